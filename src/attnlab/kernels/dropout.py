"""Attention dropout that is the same in every kernel: each tile of a problem seeds its own generator, so a kernel that
recomputes a tile, and the reference that holds all of them, drop the same weights."""

import torch
from torch import Tensor

from attnlab.errors import RequestError

from .call import Call
from .tiles import Tile, Tiling

STRIDE = 1_000_003
"""Distance between the seeds of neighbouring tiles; a prime, so that the tiles of two calls rarely share seeds."""

LEVELS = 2**16
"""A weight costs 16 random bits, so the rate is rounded to 1/65536; `scale` uses the rounded rate."""


def keep_tile(tile: Tile, seed: int, dropout: float, dtype: torch.dtype = torch.bool) -> Tensor:
    """Draw which weights of a tile are kept, as booleans or as 0 and 1 in another dtype, [groups, rows, horizon]."""
    generator = torch.Generator().manual_seed((seed + tile.index * STRIDE) % 2**63)
    words = torch.empty(-(-tile.num_pairs // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    # Written in the dtype that it is multiplied in: torch converts booleans one by one.
    is_kept = torch.empty(tile.num_pairs, dtype=dtype)
    torch.ge(words.view(torch.int16)[: tile.num_pairs], round(dropout * LEVELS) - LEVELS // 2, out=is_kept)
    return is_kept.view(tile.shape)


def check_rate(dropout: object) -> None:
    """Refuse a rate that 16 bits cannot draw."""
    is_number = isinstance(dropout, int | float) and not isinstance(dropout, bool)
    if not is_number or not (dropout == 0 or 1 / LEVELS <= dropout <= 1 - 1 / LEVELS):  # type: ignore[operator]
        raise RequestError(f"dropout must be 0, or a rate from 1/65536 up to 1 − 1/65536, not {dropout!r}")


def scale(dropout: float) -> float:
    """Return the factor of the weights that are kept."""
    return 1 / (1 - round(dropout * LEVELS) / LEVELS)


def keep(call: Call, shape: torch.Size) -> Tensor:
    """Draw which weights of a whole problem are kept, [b h q k]."""
    b, h, q, k = shape
    is_kept = torch.zeros(b, h, q, k, dtype=torch.bool)
    # mask(zero) gives weight to future keys, unless a score of 0 has weight 0: then no tile ends at the diagonal.
    mechanism = call.mechanism
    is_cut = mechanism.causal.where != "zero" or mechanism.weights.keeps_zero
    for tile in Tiling(b, h, q, k, call.visibility.causal and is_cut):
        part = is_kept[tile.batch, tile.heads, tile.start : tile.stop, : tile.horizon]
        part.copy_(keep_tile(tile, call.seed, call.dropout).view(part.shape))
    return is_kept.to(call.q.device)
