"""What the mask stages of a mechanism add to a call: pairs that no query sees, known from positions or from rows."""

import dataclasses
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import ShapeError
from attnlab.mechanisms import Mask, Mechanism, Positions

from .call import Call, Request
from .positions import as_positions
from .visibility import as_mask


def hide_pairs(call: Call) -> Call:
    """Return the call with the masks that its positions determine in its visibility, instead of its mechanism.

    Keys at negative positions are those of a prefix, which every query sees.
    """
    masks = list_position_masks(call.mechanism)
    if not masks:
        return call
    shape = (*call.q.shape[:3], call.k.shape[2])
    pairs = compute_pairs(masks, call.positions or as_positions(None, call.q, call.k), shape)
    if call.positions is not None:
        pairs = pairs | (call.positions.keys < 0)[:, :, None]
    visibility = call.visibility
    pairs = pairs if visibility.mask is None else pairs & visibility.mask
    visibility = dataclasses.replace(visibility, mask=pairs)
    return dataclasses.replace(call, mechanism=drop_position_masks(call.mechanism), visibility=visibility)


def list_position_masks(mechanism: Mechanism) -> tuple[Mask, ...]:
    """List the masks that positions determine."""
    return tuple(stage for stage in mechanism.mask if not stage.is_by_row)


def drop_position_masks(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with the masks that depend on the scores or the visible pairs of a row."""
    return dataclasses.replace(mechanism, mask=tuple(stage for stage in mechanism.mask if stage.is_by_row))


def compute_pairs(masks: tuple[Mask, ...], positions: Positions, shape: tuple[int, int, int, int]) -> Tensor:
    """Return the pairs that all of these masks allow, [b|1 h|1 q k]."""
    return reduce(Tensor.__and__, (call_mask(stage, positions, shape) for stage in masks))


def call_mask(stage: Mask, positions: Positions, shape: tuple[int, int, int, int]) -> Tensor:
    """Return the pairs that a mask of positions allows, [b|1 h|1 q k]."""
    known: dict[str, Any] = {"positions": positions, "num_heads": shape[1]}
    return check_pairs(stage, stage(**{name: known[name] for name in stage.inputs}), shape)


def keep_by_rows(call: Call, scores: Tensor, visible: Tensor | None) -> Tensor | None:
    """Return the visible pairs, without those that masks forbid for the scores or the visible pairs of their row.

    A mask that knows positions shows a prefix to all queries, as masks of positions do.
    """
    shape: Any = tuple(scores.shape)
    for stage in call.mechanism.mask:
        shown = visible
        if shown is None and stage.inputs.get("visible"):
            shown = torch.ones((), dtype=torch.bool, device=scores.device)
        given = call.gather_needs(stage, None if shown is None else shown.expand(shape), scores)
        kept = check_pairs(stage, stage(**given), shape)
        if "positions" in given:
            kept = kept | (given["positions"].keys < 0)[:, :, None]
        visible = kept if visible is None else kept & visible
    return visible


def check_pairs(stage: Mask, pairs: object, shape: tuple[int, int, int, int]) -> Tensor:
    """Refuse a result of a mask that is not booleans for these pairs."""
    if not isinstance(pairs, Tensor):
        raise ShapeError(f"'{stage}' must return a boolean tensor [b h q k] = {shape}, not {type(pairs).__name__}")
    try:
        checked = as_mask(pairs, shape)
    except ShapeError as error:
        heads = tuple(pairs.shape)[-3:-2]
        hint = f"; the number of heads is not always {heads[0]}: request `num_heads`" if heads > (1,) else ""
        raise ShapeError(f"'{stage}': {error}{hint if heads != (shape[1],) else ''}") from None
    assert checked is not None
    return checked


def refuse_row_masks(request: Request) -> str | None:
    """Return why a kernel that never holds the scores of a whole row cannot mask by them, or None."""
    masks = [stage for stage in request.mechanism.mask if stage.is_by_row]
    return f"holds no whole rows, which '{masks[0]}' needs to choose pairs" if masks else None
