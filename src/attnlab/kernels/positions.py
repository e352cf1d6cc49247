"""Where the queries and keys of a call stand: what the caller says, or 0, 1, … with the last query at the last key."""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.errors import ShapeError
from attnlab.mechanisms import Positions

Given = Tensor | tuple[Tensor, Tensor] | Positions | None
"""What a caller may say: positions of the keys, or a pair, of the queries and of the keys."""


def as_positions(given: Given, q: Tensor, k: Tensor) -> Positions:
    """Return the positions of q [b h q d] and k [b h k d], checked."""
    batch, num_queries, num_keys = q.shape[0], q.shape[2], k.shape[2]
    if given is None:
        return Positions(
            torch.arange(num_keys - num_queries, num_keys, device=q.device)[None, None],
            torch.arange(num_keys, device=q.device)[None, None],
        )
    if isinstance(given, Positions):
        given = (given.queries, given.keys)
    if isinstance(given, tuple) and len(given) == 2:
        queries, keys = given
        return Positions(
            _check_positions("positions of the queries", queries, batch, num_queries, q.device),
            _check_positions("positions of the keys", keys, batch, num_keys, q.device),
        )
    if isinstance(given, tuple):
        raise ShapeError(f"positions must be a tensor, or a pair of queries' and keys', not {len(given)} tensors")
    keys = _check_positions("positions", given, batch, num_keys, q.device)
    if num_queries > num_keys:
        raise ShapeError(
            f"positions of {num_keys} keys do not say where {num_queries} queries stand; pass a pair, of the queries "
            "and of the keys"
        )
    return Positions(keys[..., num_keys - num_queries :], keys)


def _check_positions(name: str, positions: Tensor, batch: int, length: int, device: torch.device) -> Tensor:
    """Give positions [n], [b n] or [b 1 n] their three axes; refuse others, and what is no whole number."""
    if not isinstance(positions, Tensor) or positions.is_floating_point() or positions.dtype == torch.bool:
        kind = positions.dtype if isinstance(positions, Tensor) else type(positions).__name__
        raise ShapeError(f"{name} must be a tensor of whole numbers, not {kind}")
    shape = tuple(positions.shape)
    full = positions[:, None] if positions.dim() == 2 else positions.reshape((1,) * (3 - positions.dim()) + shape)
    if full.dim() != 3 or full.shape[0] not in (1, batch) or full.shape[1] != 1 or full.shape[2] != length:
        raise ShapeError(f"{name} must be [length={length}] or [batch={batch}, length={length}], not {shape}")
    return full.to(device)
