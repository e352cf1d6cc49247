"""Cross-entropy of a linear vocabulary head in blocks of rows and tiles of the vocabulary that fit the cache.

loss = Σ logsumexp(W h + b) − (W h + b)[label]. Its gradient with respect to the logits is softmax − one-hot, so the
forward pass computes all gradients block by block, and the backward pass only scales them. The logits of a tile become
e = exp(logits − shift) while they are in the cache, where a row's shift is its maximum so far. With the factor
f = exp(shift − logsumexp), softmax = f ⊙ e, and f is applied to the states and to the products, never to e:
∂loss/∂h = Σ f ⊙ (e W) and ∂loss/∂W = eᵀ (f ⊙ h) over the tiles. So each logit is computed and exponentiated once.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnlab.denormals import flush_denormals
from attnlab.errors import TaskError
from attnlab.install.exponentials import Exponentiate, choose_exponentials
from attnlab.machine import cache_bytes

CHUNK = 2**23
"""Logits that exist at once. Larger gains nothing, smaller makes thin matrix products."""
MIN_ROWS, ROWS_PER_CHANNEL = 64, 4
"""Rows of a block, at most CHUNK logits: with so many, reading the weight costs little beside the logits.
More would only make the exponentials leave the cache before the gradients read them."""
TILE_BYTES = 2**20
"""Least size of a tile, even if the L2 cache is small: below it the fixed costs of a tile outweigh."""


def compute_summed_loss(states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    """Return the sum of −log p over labelled states [n, d], in fp32."""
    total: Tensor = _SummedLoss.apply(states, weight, bias, labels, _choose_dtype(states))  # type: ignore[no-untyped-call]
    return total


@torch.no_grad()
def compute_losses_and_hits(
    states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return −log p of every label in fp64, and whether no token is likelier."""
    dtype, nats, hits = _choose_dtype(states), [], []
    with flush_denormals(states.device.type):
        for block in _split_into_blocks(states.to(dtype), weight.to(dtype), bias, labels):
            nats.append(block.losses.double())
            hits.append(block.hits)
    return torch.cat(nats), torch.cat(hits)


def _choose_dtype(states: Tensor) -> torch.dtype:
    """Return the dtype of products: that of autocast where it is on."""
    device = states.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype


def _split_rows(num_rows: int, vocab: int, most: int | None) -> Iterator[slice]:
    """Yield blocks of about the same number of rows, at most `most`, with at most CHUNK logits if they have several."""
    rows = max(1, CHUNK // vocab)
    num_blocks = -(-num_rows // (rows if most is None else min(rows, most)))
    ends = [num_rows * number // num_blocks for number in range(1, num_blocks + 1)]
    yield from map(slice, [0, *ends], ends)


def _choose_width(states: Tensor, vocab: int) -> int:
    """Return how many tokens of the vocabulary a tile has: its logits fill half of the processor's L2 cache."""
    if states.device.type != "cpu":
        return vocab
    size = max((cache_bytes("L2") or 0) // 2, TILE_BYTES) // states.element_size()
    return min(vocab, max(1, size // len(states)))


def _choose_rows(states: Tensor, vocab: int) -> int | None:
    """Return how many rows a block has at most: enough for thick products, and to fill a tile; None on a GPU."""
    if states.device.type != "cpu":
        return None
    return max(MIN_ROWS, ROWS_PER_CHANNEL * states.shape[1], TILE_BYTES // states.element_size() // vocab)


def _split_by_label(labels: Tensor, starts: list[int], vocab: int) -> list[Tensor]:
    """Return the rows whose label is in each part of the vocabulary, which begin at `starts`."""
    sorted_labels, order = labels.sort(stable=True)
    bounds = torch.tensor([*starts, vocab], device=labels.device)
    ends: list[int] = torch.searchsorted(sorted_labels, bounds).tolist()
    if ends[0] or ends[-1] < len(labels):
        lowest, highest = int(sorted_labels[0]), int(sorted_labels[-1])
        raise TaskError(
            f"labels go from {lowest} to {highest}, and the model's vocabulary from 0 to {vocab - 1}; use the "
            "tokenizer that belongs to the model"
        )
    return [order[first:last] for first, last in pairwise(ends)]


class _Block:
    """The softmax of some rows: factors [tiles, n] times exponentials in tiles [n, width], which are in a buffer."""

    def __init__(
        self, states: Tensor, matrix: Tensor, bias: Tensor | None, labels: Tensor, buffer: Tensor,
        exponentiate: Exponentiate,
    ) -> None:  # fmt: skip
        num_rows, vocab, width = len(states), len(matrix), _choose_width(states, len(matrix))
        self.states, self.matrix, self.labels = states, matrix, labels
        self.columns = [slice(start, min(start + width, vocab)) for start in range(0, vocab, width)]
        self.tiles = [buffer[num_rows * part.start : num_rows * part.stop].view(num_rows, -1) for part in self.columns]
        dtype = torch.promote_types(states.dtype, torch.float32)
        shift = states.new_full((num_rows,), torch.finfo(dtype).min, dtype=dtype)
        total = torch.zeros_like(shift)
        label_logits, shifts = torch.empty_like(shift), []
        labelled_rows = _split_by_label(labels, [part.start for part in self.columns], vocab)
        for part, tile, rows in zip(self.columns, self.tiles, labelled_rows, strict=True):
            logits = torch.mm(states, matrix[part].t(), out=tile).to(dtype)  # the tile itself if it has this dtype
            if bias is not None:
                logits += bias[part]
            if len(rows):
                label_logits[rows] = logits[rows, labels[rows] - part.start]
            shift, total = exponentiate(logits, shift, total)
            shifts.append(shift)
            if logits is not tile:
                tile.copy_(logits)
        # The logsumexp is shift + log total, but their sum would be rounded more than its parts.
        self.factors = (torch.stack(shifts) - shift).exp_().div_(total)
        log_probabilities = label_logits - shift - total.log()
        self.losses, self.hits = -log_probabilities, label_logits >= shift
        # At the label the gradient is p − 1, which is rounded less apart from the other products if p is almost 1.
        self.label_slopes = log_probabilities.expm1()[:, None]
        starts = labels // width * width
        widths = (vocab - starts).clamp(max=width)
        offsets = widths * torch.arange(num_rows, device=labels.device)
        buffer.index_fill_(0, starts * num_rows + offsets + labels - starts, 0.0)

    def add_gradients(self, states: Tensor | None, weight: Tensor | None, bias: Tensor | None) -> None:
        """Add the gradients of the loss to those of the states [n, d], the weight [vocab, d] and the bias [vocab]."""
        for part, tile, factor in zip(self.columns, self.tiles, self.factors[:, :, None], strict=True):
            if states is not None:
                states += (tile @ self.matrix[part]) * factor
            if weight is not None:
                scaled = (self.states * factor).to(tile.dtype)
                if weight.dtype == tile.dtype:
                    weight[part].addmm_(tile.t(), scaled)
                else:  # the sum is of higher precision than its factors
                    weight[part] += tile.t() @ scaled
            if bias is not None:
                bias[part] += tile.t() @ factor[:, 0].to(tile.dtype)
        if states is not None:
            states += self.label_slopes * self.matrix.index_select(0, self.labels)
        if weight is not None:
            weight.index_add_(0, self.labels, self.label_slopes * self.states)
        if bias is not None:
            bias.index_add_(0, self.labels, self.label_slopes[:, 0])


def _split_into_blocks(states: Tensor, matrix: Tensor, bias: Tensor | None, labels: Tensor) -> Iterator[_Block]:
    """Yield the softmax of all rows block by block; a block is valid until the next one, which has its memory."""
    blocks = list(_split_rows(len(states), len(matrix), _choose_rows(states, len(matrix))))
    buffer = states.new_empty(max((rows.stop - rows.start for rows in blocks), default=0) * len(matrix))
    exponentiate = choose_exponentials(states.device.type, len(states) * len(matrix))
    for rows in blocks:
        yield _Block(states[rows], matrix, bias, labels[rows], buffer, exponentiate)


class _SummedLoss(torch.autograd.Function):
    """Computes loss and gradients together, products in `dtype`, sums in at least fp32."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, dtype: torch.dtype
    ) -> Tensor:
        low, matrix = states.to(dtype), weight.to(dtype)
        total = torch.zeros((), dtype=torch.promote_types(dtype, torch.float32), device=states.device)
        grads = [
            torch.zeros_like(tensor, dtype=total.dtype) if is_needed and tensor is not None else None
            for tensor, is_needed in zip((states, weight, bias), ctx.needs_input_grad[:3], strict=True)
        ]
        with flush_denormals(states.device.type):  # the probabilities of unlikely tokens are such numbers
            done = 0
            for block in _split_into_blocks(low, matrix, bias, labels):
                rows = slice(done, done := done + len(block.states))
                total += block.losses.sum()
                if any(ctx.needs_input_grad):
                    block.add_gradients(None if grads[0] is None else grads[0][rows], *grads[1:])
        ctx.save_for_backward(*grads)
        ctx.dtypes = states.dtype, weight.dtype, None if bias is None else bias.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        grads = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        scaled = [None if grad is None else (grad * factor.to(grad.dtype)).to(dtype) for grad, dtype in grads]
        return (*scaled, None, None)
