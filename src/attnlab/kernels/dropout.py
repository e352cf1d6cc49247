"""Attention dropout that every kernel draws alike: each tile of a problem seeds its own generator, so a kernel that
recomputes a tile, and the reference that holds them all, see the same weights vanish."""

from __future__ import annotations

import torch
from torch import Tensor

from .call import Call
from .tiles import Tile, Tiling

STRIDE = 1_000_003
"""Keeps the seeds of neighbouring calls' tiles apart; a prime, so that they do not fall into step."""

LEVELS = 2**16
"""A weight costs 16 random bits, so the rate is rounded to 1/65536; the scale below uses the rounded rate."""


def keep_tile(tile: Tile, seed: int, dropout: float) -> Tensor:
    """Draw which weights of a tile stay, as booleans [groups, rows, horizon]."""
    generator = torch.Generator().manual_seed((seed + tile.index * STRIDE) % 2**63)
    shape = (tile.num_groups, tile.num_rows, tile.horizon)
    size = shape[0] * shape[1] * shape[2]
    words = torch.empty(-(-size // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return (words.view(torch.int16)[:size] >= round(dropout * LEVELS) - LEVELS // 2).view(shape)


def is_rate(dropout: object) -> bool:
    """Tell whether a number is a rate that 16 bits can draw: 0, or from 1/65536 up to 1 − 1/65536."""
    if isinstance(dropout, bool) or not isinstance(dropout, int | float):
        return False
    return dropout == 0 or 1 / LEVELS <= dropout <= 1 - 1 / LEVELS


def scale(dropout: float) -> float:
    """Return what the weights that stay are multiplied with."""
    return 1 / (1 - round(dropout * LEVELS) / LEVELS)


def keep(call: Call, shape: torch.Size) -> Tensor:
    """Draw which weights of a whole problem stay, [b h q k]."""
    b, h, q, k = shape
    whole = torch.zeros(b, h, q, k, dtype=torch.bool)
    # mask(zero) gives weight to keys that causality forbids, unless a score of 0 has none: there nothing is cut off.
    mechanism = call.mechanism
    is_cut = mechanism.mask.where != "zero" or mechanism.weights.keeps_zero
    for tile in Tiling(b, h, q, k, call.visibility.causal and is_cut):
        part = whole[tile.batch, tile.heads, tile.start : tile.stop, : tile.horizon]
        part.copy_(keep_tile(tile, call.seed, call.dropout).view(part.shape))
    return whole.to(call.q.device)
