"""The entry point: check the inputs, apply the stages around the kernel, and run the chosen kernel.

values stages → token dropout → features and rotation by positions → kernel (score, mask, weights, mix) → heads and
output stages
"""

import dataclasses
import functools
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import ParameterError, RequestError, ShapeError, closest
from attnlab.mechanisms import LayerInput, Mechanism, Params, parse_mechanism
from attnlab.mechanisms.stage import check_result

from . import reference
from .call import Call
from .choose import choose, compute
from .decay import make_decay, make_strengths
from .denormals import compute_flushed
from .dropout import check_rate
from .fold import fold
from .layer_input import GivenInput, as_layer_input, check_layer_input, find_model_dim, split_heads
from .masks import hide_pairs
from .positions import Given, as_positions, find_own_keys, find_seen_keys, take_own
from .visibility import Visibility, as_mask

MechanismLike = str | Mechanism


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mechanism: MechanismLike = "dot | softmax",
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    kernel: str = "auto",
    scale: float | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    dropout: float = 0.0,
    training: bool = False,
    x: GivenInput = None,
    first: Tensor | None = None,
    positions: Given = None,
    layer: int = 0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Attend with q [b h q d], k [b h k d] and v [b h k e]; leading axes of size 1 may be omitted.

    causal: no query sees a later key. The causal mask is aligned to the lower right: queries see all of a longer
    cache; if there are more queries than keys, the first ones see nothing.
    mask: booleans that broadcast to [b h q k], True = may attend. Masked keys and values must be finite.
    scale: factor of dot or cosine scores, if the mechanism does not set one.
    kernel: a kernel's name, or 'auto' for the fastest one that can compute the call (see `attnlab.explain`).
    parameters: learned parameters by the names `Mechanism.parameters` declares; default: their initial values.
    dropout: the dropout rate of the weights. training: whether token_dropout is active.
    x: the layer's input, for stages that need it (forget, gate, bypass …): [b k m], or split by heads like q; of the
    keys' tokens, the last of which are the queries', or a pair (queries, keys). bypass has a default: the projected
    tensor (an identity projection).
    first: the first layer's values, for value_residual; default: v.
    positions: integers for stages that need positions: [k] or [b k] for the keys (queries take the last ones), or a
    pair (queries, keys). Default: 0, 1, …, with the last query at the last key. `causal` follows the order of the keys.
    layer: the number of the layer in a model, for stages that depend on it.
    generator: source of random numbers for dropout; default: torch's global generator.
    """
    call, num_axes = prepare(
        q, k, v, mechanism, causal=causal, mask=mask, scale=scale, parameters=parameters, x=x, first=first,
        positions=positions, dropout=dropout, training=training, layer=layer, generator=generator,
    )  # fmt: skip
    with _without_autocast(call.q):
        folded = call if kernel == reference.NAME or _is_empty(call) else fold(call)
        chosen, _ = choose(folded.request, kernel)
        if _is_empty(call):
            mixed = _return_zeros(call)
        elif folded.decay is None and call.decay is not None:  # weights of faded keys are tiny
            mixed = compute_flushed(functools.partial(compute, chosen), folded).to(call.q.dtype)
        else:
            mixed = compute(chosen, folded).to(call.q.dtype)
        out = finish(call, mixed)
    return out.reshape(out.shape[4 - num_axes :])


def attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mechanism: MechanismLike, **options: Any
) -> tuple[Tensor, Tensor]:
    """Attend with the reference; return the output [b h q e] and the weights [b h q k] that it is computed from.

    The weights are before dropout, and gradients of the output reach them. Tensors have four axes; options as in
    `attend`, without `kernel`.
    """
    call = hide_pairs(prepare(q, k, v, mechanism, **options)[0])
    with _without_autocast(call.q):
        if _is_empty(call):
            return _return_zeros(call), call.q.new_zeros(*call.q.shape[:3], call.k.shape[2])
        w = reference.weights(call)
        return finish(call, reference.mix(call, w)), w


def finish(call: Call, out: Tensor) -> Tensor:
    """Combine what the heads mixed, and apply the output stages."""
    heads = call.mechanism.heads
    if heads is not None:
        out = heads.combine(out, call.params_of(heads), call.layer).to(out.dtype)
    assert call.plain_q is not None
    for stage in call.mechanism.output:
        changed = stage(out, call.plain_q, call.params_of(stage), **_gather_for_output(call, stage.inputs))
        check_result(stage, changed, out.shape)
        out = changed.to(out.dtype)
    return out


def _gather_for_output(call: Call, inputs: Mapping[str, bool]) -> dict[str, Any]:
    """Return the keyword arguments an output stage requests."""
    given: dict[str, Any] = {}
    if "x" in inputs and call.x is not None:
        given["x"] = call.x.queries
    if "own" in inputs and call.plain_v is not None:
        given["own"] = take_own(call.plain_v, find_own_keys(call.positions, call.visibility))
    if "layer" in inputs:
        given["layer"] = call.layer
    return given


def _is_empty(call: Call) -> bool:
    """Tell whether there are no pairs: torch's fused kernel would divide by 0."""
    return 0 in (*call.q.shape, call.k.shape[2])


def _return_zeros(call: Call) -> Tensor:
    """Return zeros with gradients of zero."""
    everything = torch.ones((), dtype=torch.bool, device=call.q.device)
    zero = sum(x.masked_fill(everything, 0).sum() for x in (call.q, call.k, call.v))
    return zero + call.q.new_zeros(*call.q.shape[:3], call.v.shape[3])


def weights(
    q: Tensor,
    k: Tensor,
    mechanism: MechanismLike = "dot | softmax",
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
    parameters: Mapping[str, Tensor] | None = None,
    x: GivenInput = None,
    positions: Given = None,
) -> Tensor:
    """Return the weights [b h q k], computed by the reference; arguments as in `attend`."""
    call, num_axes = prepare(
        q, k, k, mechanism, causal=causal, mask=mask, scale=scale, parameters=parameters, x=x, positions=positions
    )
    with _without_autocast(call.q):
        empty = call.q.new_zeros(*call.q.shape[:3], call.k.shape[2])
        w = empty if _is_empty(call) else reference.weights(hide_pairs(call))
    return w.reshape(w.shape[4 - num_axes :])


def prepare(
    q: Tensor, k: Tensor, v: Tensor, mechanism: MechanismLike, *, causal: bool = False, mask: Tensor | None = None,
    scale: float | None = None, parameters: Mapping[str, Tensor] | None = None, x: GivenInput = None,
    first: Tensor | None = None, positions: Given = None, dropout: float = 0.0, training: bool = False,
    layer: int = 0, generator: torch.Generator | None = None,
) -> tuple[Call, int]:  # fmt: skip
    """Check the inputs of `attend` and apply the values stages; return the call and the number of axes of q."""
    check_rate(dropout)
    if not isinstance(causal, bool):
        raise RequestError(f"causal must be True or False, not {causal!r}")
    parsed = parse_mechanism(mechanism)
    parsed = parsed if scale is None else _set_scale(parsed, scale)
    num_axes = q.dim() if isinstance(q, Tensor) else 0
    q, k, v = (_add_axes(name, tensor) for name, tensor in (("q", q), ("k", k), ("v", v)))
    k, v = _repeat_key_heads(q, k), _repeat_key_heads(q, v)
    _check_shapes(q, k, v)
    parsed = _choose_direction(parsed, causal)
    given_x = as_layer_input(x, q, k, num_axes)
    check_layer_input(parsed, given_x, q.shape[2], k.shape[2])
    p = {**_check_parameters(parsed, q, v, parameters, find_model_dim(given_x)), **_compute_constants(parsed, q)}
    q, k, v = _apply_values_stages(parsed, q, k, v, p, given_x, first)
    mask = as_mask(mask, (*q.shape[:3], k.shape[2]))
    seed = int(torch.randint(2**62, (), generator=generator)) if dropout else 0
    if parsed.drop is not None and training and parsed.drop.p > 0:
        source = generator or torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        kept_keys = parsed.drop.draw_kept_keys(k.shape[0], k.shape[2], source).to(k.device)
        mask = kept_keys if mask is None else mask & kept_keys
    visibility = Visibility(q.shape[2], k.shape[2], causal, mask, q.device)
    # Positions cost time, so they are computed only if a stage needs them, and checked if they are passed.
    scheme = parsed.positions
    is_needed = any("positions" in stage.needs for stage in (parsed.score, parsed.weights)) or scheme.uses_positions
    has_positions = positions is not None or is_needed
    known_positions = as_positions(positions, q, k) if has_positions else None
    plain_q, plain_v = q, v
    q, k = _apply_features(parsed, q, k, p, visibility, is_before=True)
    if scheme.rotates and known_positions is not None:
        q, k = scheme.rotate(q, known_positions.queries), scheme.rotate(k, known_positions.keys)
    q, k = _apply_features(parsed, q, k, p, visibility, is_before=False)
    v = v if parsed.heads is None else parsed.heads.spread_values(v)
    decay = make_decay(parsed, given_x, k, p, visibility, known_positions)
    beta = make_strengths(parsed, given_x, k, p, visibility)
    call = Call(
        parsed, q, k, v, p, visibility, dropout, seed, known_positions, plain_q, plain_v, given_x, layer, decay, beta
    )
    return call, num_axes


def _apply_values_stages(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, p: Params, x: LayerInput | None, first: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    tensors = {"q": q, "k": k, "v": v}
    for stage in mechanism.values:
        t = tensors[stage.target]
        source = None if x is None else x.queries if stage.target == "q" else x.keys
        layer_input = t if source is None else _split_input(source, t)
        first_values = v if first is None else _check_side_input("first", first, v)
        changed = stage(t, layer_input, first_values, mechanism.params_of(stage, p))
        check_result(stage, changed, t.shape)
        tensors[stage.target] = changed.to(t.dtype)
    return tensors["q"], tensors["k"], tensors["v"]


def _apply_features(
    mechanism: Mechanism, q: Tensor, k: Tensor, p: Params, visibility: Visibility, is_before: bool
) -> tuple[Tensor, Tensor]:
    """Apply the features that act before positions enter, or after."""
    tensors = {"q": q, "k": k}
    for stage in mechanism.features:
        for side in stage.sides if stage.acts_before_positions == is_before else ():
            t = tensors[side]
            given = {"before": _shift(t, visibility)} if "before" in stage.inputs else {}
            changed = stage(t, side, mechanism.params_of(stage, p), **given)
            check_result(stage, changed, (*t.shape[:3], stage.width(t.shape[3])))
            tensors[side] = changed.to(t.dtype)
    return tensors["q"], tensors["k"]


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


def _add_axes(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor with four axes and a floating-point dtype, that of autocast if it is enabled."""
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a torch tensor, not {type(tensor).__name__}")
    if not 1 <= tensor.dim() <= 4:
        raise ShapeError(f"{name} must be [batch, heads, length, head_dim]; its shape is {tuple(tensor.shape)}")
    if tensor.is_complex():
        raise ShapeError(f"{name} must hold real numbers, not {tensor.dtype}")
    tensor = tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())
    device = tensor.device.type
    if torch.is_autocast_enabled(device):
        tensor = tensor.to(torch.get_autocast_dtype(device))
    return tensor.reshape((1,) * (4 - tensor.dim()) + tuple(tensor.shape))


def _repeat_key_heads(q: Tensor, t: Tensor) -> Tensor:
    """Repeat key or value heads for grouped-query attention."""
    if t.shape[1] == q.shape[1] or t.shape[1] == 0 or q.shape[1] % t.shape[1]:
        return t
    return t.repeat_interleave(q.shape[1] // t.shape[1], dim=1)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.shape[:2] == k.shape[:2] == v.shape[:2]:
        raise ShapeError(
            f"q, k and v must have the same batch and heads (fewer key heads must divide the query heads): {shapes}"
        )
    if q.shape[3] != k.shape[3]:
        raise ShapeError(f"q and k must have the same head_dim: {shapes}")
    if k.shape[2] != v.shape[2]:
        raise ShapeError(f"k and v must have the same length: {shapes}")
    if not (q.dtype == k.dtype == v.dtype and q.device == k.device == v.device):
        kinds = ", ".join(f"{n} {t.dtype} on {t.device}" for n, t in (("q", q), ("k", k), ("v", v)))
        raise ShapeError(f"q, k and v must have one dtype and device: {kinds}")
    if q.shape[3] == 0 or v.shape[3] == 0:
        raise ShapeError(f"head_dim must not be 0: {shapes}")


def _split_input(x: Tensor, like: Tensor) -> Tensor:
    """Return x split by heads; refuse a shape other than that of the tensor it is added to."""
    (_, num_heads, length, width), given = like.shape, tuple(x.shape)
    if given[1:] != (length, num_heads * width):
        raise ShapeError(
            f"x must have the shape of the tensor it is added to, {tuple(like.shape)}, or [batch, length, model_dim] = "
            f"{(len(like), length, num_heads * width)}, not {given}"
        )
    return split_heads(x, num_heads)


def _check_side_input(name: str, tensor: Tensor, like: Tensor) -> Tensor:
    """Return `first` with four axes; refuse a shape other than that of the tensor it is added to."""
    tensor = _add_axes(name, tensor)
    if tensor.shape != like.shape:
        needed, shape = tuple(like.shape), tuple(tensor.shape)
        raise ShapeError(f"{name} must have the shape of the tensor it is added to, {needed}, not {shape}")
    return tensor.to(like)


def _check_parameters(
    mechanism: Mechanism, q: Tensor, v: Tensor, given: Mapping[str, Tensor] | None, model_dim: int
) -> Params:
    """Return the learned parameters in the dtype of q: the caller's, checked, or the declared initial values."""
    sizes = (q.shape[1], q.shape[3], v.shape[3])
    if given is None:
        return {name: value.to(q) for name, value in initial_values(mechanism, *sizes, model_dim=model_dim).items()}
    declared = mechanism.parameters(*sizes, model_dim=model_dim)
    for name in given:
        if name not in declared:
            hint = closest(name, declared) or f"; it has {', '.join(declared) or 'none'}"
            raise ParameterError(f"'{mechanism}' has no parameter '{name}'{hint}")
    for name, parameter in declared.items():
        if name not in given:
            raise ParameterError(f"parameter '{name}' of '{mechanism}' is missing; its shape is {parameter.shape}")
        shape = tuple(given[name].shape)
        # Of what the heads of a layer share, a model holds one.
        is_shared = parameter.per != "head" and shape == (1, *parameter.shape[1:])
        if shape != parameter.shape and not is_shared:
            raise ParameterError(f"parameter '{name}' must have shape {parameter.shape}, not {shape}")
    return {name: given[name].to(q) for name in declared}


def initial_values(
    mechanism: Mechanism, num_heads: int, head_dim: int, value_dim: int, seed: int = 0, layer: int = 0, **more: int
) -> dict[str, Tensor]:
    """Return the initial values of the learned parameters; each depends only on the seed, its name and the layer."""
    declared = mechanism.parameters(num_heads, head_dim, value_dim, layer, **more)
    values = {}
    for name, parameter in declared.items():
        generator = torch.Generator()  # torch.compile leaves the function here, before a hash that it cannot trace
        generator.manual_seed(zlib.crc32(f"{name}:{seed}".encode()))
        values[name] = parameter.draw(name, generator)
    return values


def _without_autocast(q: Tensor) -> torch.autocast | nullcontext[None]:
    """Disable autocast inside kernels: the inputs have its dtype already, and kernels choose their own precision."""
    device = q.device.type
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()
