"""Cross-entropy of a linear vocabulary head, a few rows at a time: no more logits exist at once than a chunk holds.

loss = Σ logsumexp(W h + b) − (W h + b)[label]. Its gradient with respect to the logits, softmax − one-hot, is known as
soon as they are, so it is taken while a chunk is at hand, and the backward pass only scales it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 2**23
"""Logits that exist at once. Larger gains nothing, smaller makes thin matrix products."""


def summed_loss(states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    """Return the sum of −log p over labelled states [n, d], in fp32."""
    dtype = torch.get_autocast_dtype(states.device.type) if torch.is_autocast_enabled(states.device.type) else None
    total: Tensor = SummedLoss.apply(states, weight, bias, labels, dtype or states.dtype)  # type: ignore[no-untyped-call]
    return total


def losses_and_hits(
    states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return −log p of every label in fp64, and whether it is the likeliest token."""
    nats, hits = [], []
    for some in chunks(len(states), len(weight)):
        logits = torch.nn.functional.linear(states[some], weight, bias)
        own = labels[some]
        nats.append(torch.nn.functional.cross_entropy(logits.double(), own, reduction="none"))
        hits.append(logits.argmax(-1) == own)
    return torch.cat(nats), torch.cat(hits)


def chunks(num_rows: int, vocab: int) -> Iterator[slice]:
    """Cut rows into slices whose logits fit a chunk."""
    size = max(1, CHUNK // vocab)
    for start in range(0, num_rows, size):
        yield slice(start, start + size)


class SummedLoss(torch.autograd.Function):
    """Computes loss and gradients together, each chunk's product in `dtype`, sums in fp32."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """Return the summed loss; keep what its gradients are."""
        needs_states, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        low, matrix = states.to(dtype), weight.to(dtype)
        total = torch.zeros((), dtype=torch.promote_types(dtype, torch.float32), device=states.device)
        grad_states = torch.empty_like(low) if needs_states else None
        grad_weight = torch.zeros_like(weight, dtype=total.dtype) if needs_weight else None
        grad_bias = torch.zeros_like(weight[:, 0], dtype=total.dtype) if needs_bias else None
        for some in chunks(len(states), len(weight)):
            logits = (low[some] @ matrix.t()).to(total.dtype)
            if bias is not None:
                logits += bias
            own = labels[some, None]
            chances = torch.log_softmax(logits, -1)
            total -= chances.gather(1, own).sum()
            if not any(ctx.needs_input_grad[:3]):
                continue
            slope = chances.exp_()
            slope.scatter_add_(1, own, slope.new_full((1, 1), -1.0).expand(len(own), 1))
            if grad_bias is not None:
                grad_bias += slope.sum(0)
            slope = slope.to(dtype)
            if grad_states is not None:
                torch.mm(slope, matrix, out=grad_states[some])
            if grad_weight is not None:
                if grad_weight.dtype == dtype:
                    grad_weight.addmm_(slope.t(), low[some])
                else:  # the sum is of higher precision than its factors
                    grad_weight += slope.t() @ low[some]
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        ctx.dtypes = states.dtype, weight.dtype, None if bias is None else bias.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        """Scale what forward has kept."""
        kept = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        scaled = [None if grad is None else (grad * factor.to(grad.dtype)).to(dtype) for grad, dtype in kept]
        return (*scaled, None, None)
