"""From the arguments of `attend` to a `Call`: checks, values stages, token dropout, features and rotation."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import RequestError, ShapeError
from attnlab.mechanisms import (
    Features,
    HeadMixing,
    LayerInput,
    Mechanism,
    Params,
    PositionScheme,
    TokenDropout,
    Value,
    parse_mechanism,
)
from attnlab.mechanisms.earlier_tokens import stack_earlier
from attnlab.mechanisms.stage import check_result

from .call import Call, refuse_mixer
from .decay import make_decay, make_strengths
from .dropout import check_rate
from .failures import call_stage
from .inputs import add_axes, check_devices, check_shapes, check_side_input, repeat_key_heads, split_input
from .layer_input import GivenInput, as_layer_input, check_layer_input, find_model_dim
from .parameters import check_parameters
from .positions import Given, as_positions, find_seen_keys
from .tokens import as_tokens, find_vocab_size
from .visibility import Visibility, as_mask

MechanismLike = str | Mechanism


def prepare(
    q: Tensor, k: Tensor, v: Tensor, mechanism: MechanismLike, *, causal: bool = False, mask: Tensor | None = None,
    scale: float | None = None, parameters: Mapping[str, Tensor] | None = None, x: GivenInput = None,
    first: Tensor | None = None, tokens: Tensor | None = None, positions: Given = None, dropout: float = 0.0,
    training: bool = False, layer: int = 0, generator: torch.Generator | None = None,
) -> tuple[Call, int]:  # fmt: skip
    """Check the inputs of `attend` and apply the values stages; return the call and the number of axes of q."""
    check_rate(dropout)
    if not isinstance(causal, bool):
        raise RequestError(f"causal must be True or False, not {causal!r}")
    parsed = parse_mechanism(mechanism)
    refuse_mixer(parsed)
    parsed = parsed if scale is None else _set_scale(parsed, scale)
    check_devices(q=q, k=k, v=v)
    num_axes = q.dim() if isinstance(q, Tensor) else 0
    q, k, v = (add_axes(name, tensor) for name, tensor in (("q", q), ("k", k), ("v", v)))
    k, v = repeat_key_heads(q, k), repeat_key_heads(q, v)
    check_shapes(q, k, v)
    parsed = _choose_direction(parsed, causal)
    given_x = as_layer_input(x, q, k, num_axes)
    check_layer_input(parsed, given_x, q.shape[2], k.shape[2])
    ids = as_tokens(parsed, tokens, k)
    more = {"model_dim": find_model_dim(given_x), "layer": layer}
    more["vocab_size"] = find_vocab_size(parsed, (q.shape[1], q.shape[3], v.shape[3]), ids, parameters)
    p = {**check_parameters(parsed, q, v, parameters, more), **_compute_constants(parsed, q)}
    check_devices(q=q, mask=mask)
    mask = as_mask(mask, (*q.shape[:3], k.shape[2]))
    seed = int(torch.randint(2**62, (), generator=generator)) if dropout else 0
    if parsed.drop is not None and training and parsed.drop.p > 0:
        source = generator or torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        kept_keys = _draw_kept_keys(parsed.drop, k, source)
        mask = kept_keys if mask is None else mask & kept_keys
    visibility = Visibility(q.shape[2], k.shape[2], causal, mask, q.device)
    q, k, v = _apply_values_stages(parsed, q, k, v, p, given_x, first, ids, visibility)
    # Positions cost time, so they are computed only if a stage needs them, and checked if they are passed.
    scheme = parsed.positions
    by_row = (stage for stage in parsed.mask if stage.is_by_row)
    requesting = (parsed.score, parsed.weights, *by_row)
    is_needed = any("positions" in stage.needs for stage in requesting) or scheme.uses_positions
    has_positions = positions is not None or is_needed
    known_positions = as_positions(positions, q, k) if has_positions else None
    plain_q, plain_v = q, v
    q, k = _apply_features(parsed, q, k, p, visibility, is_before=True)
    if scheme.rotates and known_positions is not None:
        q, k = (_rotate(scheme, t, at) for t, at in ((q, known_positions.queries), (k, known_positions.keys)))
    q, k = _apply_features(parsed, q, k, p, visibility, is_before=False)
    v = v if parsed.heads is None else _spread_values(parsed.heads, v)
    decay = make_decay(parsed, given_x, k, p, visibility, known_positions)
    beta = make_strengths(parsed, given_x, k, p, visibility)
    call = Call(
        parsed, q, k, v, p, visibility, dropout, seed, known_positions, plain_q, plain_v, given_x, layer, decay, beta
    )
    return call, num_axes


def _draw_kept_keys(stage: TokenDropout, k: Tensor, generator: torch.Generator) -> Tensor:
    kept: object = stage.draw_kept_keys(k.shape[0], k.shape[2], generator)
    shape = (k.shape[0], 1, 1, k.shape[2])
    if not isinstance(kept, Tensor) or kept.dtype != torch.bool or tuple(kept.shape) != shape:
        came = f"{tuple(kept.shape)} of {kept.dtype}" if isinstance(kept, Tensor) else type(kept).__name__
        raise ShapeError(f"draw_kept_keys of '{stage}' must return booleans [b 1 1 k] = {shape}, not {came}")
    return kept.to(k.device)


def _rotate(scheme: PositionScheme, t: Tensor, positions: Tensor) -> Tensor:
    rotated = call_stage(scheme, scheme.rotate, t, positions)
    check_result(scheme, rotated, t.shape)
    return rotated.to(t.dtype)


def _spread_values(heads: HeadMixing, v: Tensor) -> Tensor:
    spread = call_stage(heads, heads.spread_values, v)
    channels = spread.shape[3] if isinstance(spread, Tensor) and spread.dim() == 4 else v.shape[3]
    check_result(heads, spread, (*v.shape[:3], channels))
    return spread


def _apply_values_stages(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, p: Params, x: LayerInput | None, first: Tensor | None,
    tokens: Tensor | None, visibility: Visibility,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    tensors = {"q": q, "k": k, "v": v}
    for stage in mechanism.values:
        t = tensors[stage.target]
        source = None if x is None else x.queries if stage.target == "q" else x.keys
        layer_input = t if source is None else split_input(source, t)
        first_values = v if first is None else check_side_input("first", first, v)
        given = {"tokens": _choose_tokens(stage, tokens, t, k.shape[2])} if "tokens" in stage.inputs else {}
        given |= _give_before(stage, t, visibility)
        learned = mechanism.params_of(stage, p)
        changed = call_stage(stage, stage.__call__, t, layer_input, first_values, learned, **given)
        check_result(stage, changed, t.shape)
        tensors[stage.target] = changed.to(t.dtype)
    return tensors["q"], tensors["k"], tensors["v"]


def _choose_tokens(stage: Value, tokens: Tensor | None, t: Tensor, num_keys: int) -> Tensor | None:
    """Return the token ids of the tensor that a stage changes: of all keys, or of the queries, the last of them."""
    if tokens is None or stage.target != "q":
        return tokens
    if t.shape[2] > num_keys:
        raise RequestError(f"'{stage}' needs the token ids of the queries, and there are more of them than keys")
    return tokens[:, num_keys - t.shape[2] :]


def _apply_features(
    mechanism: Mechanism, q: Tensor, k: Tensor, p: Params, visibility: Visibility, is_before: bool
) -> tuple[Tensor, Tensor]:
    """Apply the features that act before positions enter, or after."""
    tensors = {"q": q, "k": k}
    for stage in mechanism.features:
        for side in stage.sides if stage.acts_before_positions == is_before else ():
            t = tensors[side]
            given = _give_before(stage, t, visibility)
            changed = call_stage(stage, stage.__call__, t, side, mechanism.params_of(stage, p), **given)
            check_result(stage, changed, (*t.shape[:3], stage.width(t.shape[3])))
            tensors[side] = changed.to(t.dtype)
    return tensors["q"], tensors["k"]


def _give_before(stage: Value | Features, t: Tensor, visibility: Visibility) -> dict[str, Tensor]:
    if "before" not in stage.inputs:
        return {}
    return {"before": stack_earlier(stage, t, functools.partial(_shift, visibility=visibility))}


def _shift(t: Tensor, visibility: Visibility) -> Tensor:
    """Return the tensor of the token before each, zeros at the first and after padding."""
    before = torch.nn.functional.pad(t, (0, 0, 1, 0))[:, :, :-1]
    if visibility.mask is None or t.shape[2] != visibility.num_keys:
        return before
    is_token = torch.nn.functional.pad(find_seen_keys(visibility), (1, 0))[..., :-1]
    return before.masked_fill(~is_token[..., None], 0)


@functools.lru_cache(maxsize=1024)
def _set_scale(mechanism: Mechanism, scale: float) -> Mechanism:
    score: Any = mechanism.score
    if not hasattr(score, "scale"):
        raise RequestError(f"'{score}' takes no scale; dot and cosine do")
    if score.scale is not None:
        raise RequestError(f"'{score}' has a scale already; omit scale={scale}, or the one in the line")
    return dataclasses.replace(mechanism, score=dataclasses.replace(score, scale=scale))


def _choose_direction(mechanism: Mechanism, causal: bool) -> Mechanism:
    scheme = mechanism.positions.choose_direction(causal)
    return mechanism if scheme is mechanism.positions else dataclasses.replace(mechanism, positions=scheme)


def _compute_constants(mechanism: Mechanism, q: Tensor) -> Params:
    """Return the fixed numbers of the position scheme, by names like those of its learned parameters."""
    scheme = mechanism.positions
    return {f"{scheme.name}_{name}": value.to(q) for name, value in scheme.constants(q.shape[1]).items()}
