"""Positions of the queries and keys of a call: the caller's, or 0, 1, … with the last query at the last key; and the
bias that a stage makes of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.errors import ShapeError
from attnlab.mechanisms import Params, Positions, PositionScheme, Score

from .visibility import Visibility

Given = Tensor | tuple[Tensor, Tensor] | Positions | None
"""What a caller may pass: positions of the keys, or a pair, for queries and keys."""


def as_positions(given: Given, q: Tensor, k: Tensor) -> Positions:
    """Return the positions of q [b h q d] and k [b h k d], checked."""
    batch, num_queries, num_keys = q.shape[0], q.shape[2], k.shape[2]
    if given is None:
        keys = torch.arange(num_keys, device=q.device)[None, None]
        return Positions(torch.arange(num_keys - num_queries, num_keys, device=q.device)[None, None], keys)
    if isinstance(given, Positions):
        given = (given.queries, given.keys)
    if isinstance(given, tuple) and len(given) == 2:
        queries, keys = given
        return Positions(
            _check_positions("positions of the queries", queries, batch, num_queries, q.device),
            _check_positions("positions of the keys", keys, batch, num_keys, q.device),
        )
    if isinstance(given, tuple):
        raise ShapeError(f"positions must be a tensor, or a pair for queries and keys, not {len(given)} tensors")
    keys = _check_positions("positions", given, batch, num_keys, q.device)
    if num_queries > num_keys:
        raise ShapeError(
            f"positions of {num_keys} keys do not determine those of {num_queries} queries; pass a pair, for queries "
            "and keys"
        )
    return Positions(keys[..., num_keys - num_queries :], keys)


def _check_positions(name: str, positions: Tensor, batch: int, length: int, device: torch.device) -> Tensor:
    """Return integer positions [n], [b n] or [b 1 n] with three axes; refuse others."""
    if not isinstance(positions, Tensor) or positions.is_floating_point() or positions.dtype == torch.bool:
        kind = positions.dtype if isinstance(positions, Tensor) else type(positions).__name__
        raise ShapeError(f"{name} must be a tensor of integers, not {kind}")
    shape = tuple(positions.shape)
    full = positions[:, None] if positions.dim() == 2 else positions.reshape((1,) * (3 - positions.dim()) + shape)
    if full.dim() != 3 or full.shape[0] not in (1, batch) or full.shape[1] != 1 or full.shape[2] != length:
        raise ShapeError(f"{name} must be [length={length}] or [batch={batch}, length={length}], not {shape}")
    return full.to(device)


def find_own_keys(positions: Positions | None, visibility: Visibility) -> Tensor:
    """Return the index of the key of each query's own token, [b|1 q]; −1 if it is not among the keys."""
    if positions is None:
        own = torch.arange(visibility.num_queries, device=visibility.device)[None] + visibility.offset
        return own.masked_fill((own < 0) | (own >= visibility.num_keys), -1)
    is_own = positions.distances == 0
    # Empty slots of a cache may repeat a position, and no query sees these. A mask may hide a token from itself alone.
    pairs, seen = visibility.pairs, find_seen_keys(visibility)
    is_shown, is_own = (is_own & (seen[:, None] if pairs is None else pairs))[:, 0], is_own[:, 0] & seen
    is_own = torch.where(is_shown.any(-1, keepdim=True), is_shown, is_own)
    return torch.where(is_own.any(-1), is_own.byte().argmax(-1), -1)


def take_own(t: Tensor, own: Tensor) -> Tensor:
    """Return the rows of t [b|1 h k c] that belong to the queries' own tokens, [b h q c], zeros if there is none."""
    batch = len(own) if len(t) == 1 else len(t)
    if not t.shape[2]:
        return t.new_zeros(batch, t.shape[1], own.shape[1], t.shape[3])
    index = own.clamp(min=0)[:, None, :, None]
    rows = t.expand(batch, -1, -1, -1).gather(2, index.expand(batch, t.shape[1], -1, t.shape[3]))
    return rows.masked_fill((own < 0)[:, None, :, None], 0)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Positions that rise by 1: that of key j is j + shift, that of query i is i + offset + shift.

    shift: [b|1 1 1], since sequences may be padded on the left by different lengths.
    """

    offset: int
    shift: Tensor


def align(positions: Positions | None, visibility: Visibility) -> Alignment | None:
    """Return how positions follow from indices, or None if they do not; padding may have any positions."""
    if positions is None:
        return Alignment(visibility.offset, torch.zeros(1, 1, 1, dtype=torch.long, device=visibility.device))
    if torch.compiler.is_compiling():
        return None  # the values of positions are unknown while tracing
    seen = find_seen_keys(visibility)
    ahead = positions.keys - torch.arange(visibility.num_keys, device=visibility.device)
    shift = ahead.expand(len(seen), -1, -1).gather(-1, seen.byte().argmax(-1, keepdim=True))
    places = positions.queries - shift  # the key that is at the position of each query
    steps = torch.arange(visibility.num_queries, device=visibility.device)
    is_free = not visibility.causal and visibility.num_queries != visibility.num_keys
    offset = int(places[0, 0, -1] - steps[-1]) if is_free else visibility.offset
    own = (steps + offset).clamp(0, visibility.num_keys - 1)
    is_padding = ~seen[..., own] & (own == steps + offset)
    is_right = bool(((ahead == shift) | ~seen).all()) and bool(((places == steps + offset) | is_padding).all())
    has_prefix = bool(((positions.keys < 0) & seen).any())  # every query sees it, at any distance
    return Alignment(offset, shift) if is_right and not has_prefix else None


def find_seen_keys(visibility: Visibility) -> Tensor:
    """Return the keys that a mask shows to any query, [b|1 1 k]."""
    if visibility.mask is None:
        return torch.ones(1, 1, visibility.num_keys, dtype=torch.bool, device=visibility.device)
    return visibility.mask.flatten(1, 2).any(1, keepdim=True)


def compute_bias(stage: Score | PositionScheme, positions: Positions, p: Params) -> Tensor:
    """Return the bias [b|1 h|1 q k] of positions; refuse another shape."""
    bias = stage.position_bias(positions, p)
    pairs = (positions.queries.shape[-1], positions.keys.shape[-1])
    if not isinstance(bias, Tensor) or bias.dim() != 4 or tuple(bias.shape[2:]) != pairs:
        came = tuple(bias.shape) if isinstance(bias, Tensor) else type(bias).__name__
        raise ShapeError(f"position_bias of '{stage}' must return [b h q k] with q, k = {pairs}, not {came}")
    return bias
