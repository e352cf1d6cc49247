"""The entry point: check the inputs, apply the stages around the kernel, and run the chosen kernel.

values stages → token dropout → features and rotation by positions → kernel (score, mask, weights, mix) → heads and
output stages
"""

import functools
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from attnlab.mechanisms import parse_mechanism
from attnlab.mechanisms.stage import check_result

from . import reference
from .call import Call
from .choose import choose, compute
from .denormals import compute_without_denormals
from .failures import call_stage, name_failing_stage
from .fold import fold
from .inputs import has_autocast
from .layer_input import GivenInput
from .masks import hide_pairs
from .positions import Given, find_own_keys, take_own
from .prepare import MechanismLike, prepare
from .tokens import choose_unused_tokens


@name_failing_stage
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
    tokens: Tensor | None = None,
    positions: Given = None,
    layer: int = 0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Attend with q [b h q d], k [b h k d] and v [b h k e]; leading axes of size 1 may be omitted.

    causal: no query sees a later key. The causal mask is aligned to the lower right: queries see all of a longer
    cache; if there are more queries than keys, the first ones see nothing.
    mask: booleans that broadcast to [b h q k], True = may attend. Masked keys and values must be finite.
    scale: factor of dot or cosine scores, if the mechanism does not set one.
    kernel: a kernel's name, or 'auto' for the one that is expected to be the fastest (`attnlab.explain` says why).
    parameters: learned parameters by the names `Mechanism.parameters` declares; default: their initial values.
    dropout: the dropout rate of the weights. training: whether token_dropout is active.
    x: the layer's input, for stages that need it (forget, gate, bypass …): [b k m], or split by heads like q; of the
    keys' tokens, the last of which are the queries', or a pair (queries, keys). bypass has a default: the projected
    tensor (an identity projection).
    first: the first layer's values, for value_residual; default: v.
    tokens: the token ids of the keys, integers [b k], for value_embedding. Without parameters, the vocabulary ends at
    the largest of them.
    positions: integers for stages that need positions: [k] or [b k] for the keys (queries take the last ones), or a
    pair (queries, keys). Default: 0, 1, …, with the last query at the last key. `causal` follows the order of the keys.
    layer: the number of the layer in a model, for stages and initial values that depend on it.
    generator: source of random numbers for dropout; default: torch's global generator.
    """
    call, num_axes = prepare(
        q, k, v, mechanism, causal=causal, mask=mask, scale=scale, parameters=parameters, x=x, first=first,
        tokens=tokens, positions=positions, dropout=dropout, training=training, layer=layer, generator=generator,
    )  # fmt: skip
    with _without_autocast(call.q):
        folded = call if kernel == reference.NAME or _is_empty(call) else fold(call)
        chosen, _ = choose(folded.request, kernel)
        if _is_empty(call):
            mixed = _return_zeros(call)
        elif folded.decay is None and call.decay is not None:  # weights of faded keys are tiny
            mixed = compute_without_denormals(functools.partial(compute, chosen), folded).to(call.q.dtype)
        else:
            mixed = compute(chosen, folded).to(call.q.dtype)
        out = finish(call, mixed)
    return out.reshape(out.shape[4 - num_axes :])


@name_failing_stage
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
        combined = call_stage(heads, heads.combine, out, call.params_of(heads), call.layer)
        check_result(heads, combined, (*out.shape[:3], out.shape[3] if call.plain_v is None else call.plain_v.shape[3]))
        out = combined.to(out.dtype)
    assert call.plain_q is not None
    for stage in call.mechanism.output:
        given = _gather_for_output(call, stage.inputs)
        changed = call_stage(stage, stage.__call__, out, call.plain_q, call.params_of(stage), **given)
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


@name_failing_stage
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
    tokens: Tensor | None = None,
    positions: Given = None,
    layer: int = 0,
) -> Tensor:
    """Return the weights [b h q k], computed by the reference; arguments as in `attend`."""
    parsed = parse_mechanism(mechanism)
    if tokens is None and isinstance(k, Tensor) and k.dim() > 1:
        tokens = choose_unused_tokens(parsed, k)
    call, num_axes = prepare(
        q, k, k, parsed, causal=causal, mask=mask, scale=scale, parameters=parameters, x=x, tokens=tokens,
        positions=positions, layer=layer,
    )  # fmt: skip
    with _without_autocast(call.q):
        empty = call.q.new_zeros(*call.q.shape[:3], call.k.shape[2])
        w = empty if _is_empty(call) else reference.weights(hide_pairs(call))
    return w.reshape(w.shape[4 - num_axes :])


def _without_autocast(q: Tensor) -> torch.autocast | nullcontext[None]:
    """Disable autocast inside kernels: the inputs have its dtype already, and kernels choose their own precision."""
    return torch.autocast(q.device.type, enabled=False) if has_autocast(q.device) else nullcontext()
