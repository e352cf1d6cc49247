"""Cross-entropy of a linear vocabulary head in chunks of rows, so that only one chunk of logits exists at a time.

loss = Σ logsumexp(W h + b) − (W h + b)[label]. Its gradient with respect to the logits is softmax − one-hot, so the
forward pass computes all gradients chunk by chunk, and the backward pass only scales them.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 2**23
"""Logits that exist at once. Larger gains nothing, smaller makes thin matrix products."""


def compute_summed_loss(states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    """Return the sum of −log p over labelled states [n, d], in fp32."""
    dtype = torch.get_autocast_dtype(states.device.type) if torch.is_autocast_enabled(states.device.type) else None
    total: Tensor = _SummedLoss.apply(states, weight, bias, labels, dtype or states.dtype)  # type: ignore[no-untyped-call]
    return total


def compute_losses_and_hits(
    states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return −log p of every label in fp64, and whether it is the likeliest token."""
    nats, hits = [], []
    for rows in _split_rows(len(states), len(weight)):
        logits = torch.nn.functional.linear(states[rows], weight, bias)
        nats.append(torch.nn.functional.cross_entropy(logits.double(), labels[rows], reduction="none"))
        hits.append(logits.argmax(-1) == labels[rows])
    return torch.cat(nats), torch.cat(hits)


def _split_rows(num_rows: int, vocab: int) -> Iterator[slice]:
    size = max(1, CHUNK // vocab)
    for start in range(0, num_rows, size):
        yield slice(start, start + size)


class _SummedLoss(torch.autograd.Function):
    """Computes loss and gradients together, each chunk's product in `dtype`, sums in fp32."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, dtype: torch.dtype
    ) -> Tensor:
        needs_states, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        low, matrix = states.to(dtype), weight.to(dtype)
        total = torch.zeros((), dtype=torch.promote_types(dtype, torch.float32), device=states.device)
        grad_states = torch.empty_like(low) if needs_states else None
        grad_weight = torch.zeros_like(weight, dtype=total.dtype) if needs_weight else None
        grad_bias = torch.zeros_like(weight[:, 0], dtype=total.dtype) if needs_bias else None
        for rows in _split_rows(len(states), len(weight)):
            logits = (low[rows] @ matrix.t()).to(total.dtype)
            if bias is not None:
                logits += bias
            targets = labels[rows, None]
            log_probabilities = torch.log_softmax(logits, -1)
            total -= log_probabilities.gather(1, targets).sum()
            if not any(ctx.needs_input_grad[:3]):
                continue
            slope = log_probabilities.exp_()
            slope.scatter_add_(1, targets, slope.new_full((1, 1), -1.0).expand(len(targets), 1))
            if grad_bias is not None:
                grad_bias += slope.sum(0)
            slope = slope.to(dtype)
            if grad_states is not None:
                torch.mm(slope, matrix, out=grad_states[rows])
            if grad_weight is not None:
                if grad_weight.dtype == dtype:
                    grad_weight.addmm_(slope.t(), low[rows])
                else:  # the sum is of higher precision than its factors
                    grad_weight += slope.t() @ low[rows]
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        ctx.dtypes = states.dtype, weight.dtype, None if bias is None else bias.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        grads = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        scaled = [None if grad is None else (grad * factor.to(grad.dtype)).to(dtype) for grad, dtype in grads]
        return (*scaled, None, None)
