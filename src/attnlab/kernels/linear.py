"""With identity weights attention is linear in the keys: Σ_j (q_i·k_j) v_j = q_i · Σ_j k_j v_jᵀ, so no pair is formed.

Bidirectional by associativity; causal by chunks, each with the state Σ k vᵀ of the chunks before it; and one token at
a time with that state alone. All three compute the same function.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from attnlab.errors import KernelError
from attnlab.mechanisms import Mechanism, Params

from .blockwise import make_factors
from .call import Call, Request, at_least_float
from .division import Divisor, as_divisor, divide, divide_values
from .gated import sum_with_decay
from .normalise import unit
from .running import CHUNK, running

NAME = "linear"
FORM = "a running sum of key-value products, O(n)"


def refusal(request: Request) -> str | None:
    """Refuse what is not linear in keys and values, and masks that differ between queries."""
    mechanism = request.mechanism
    if not mechanism.weights.is_identity:
        return f"needs identity weights, not '{mechanism.weights.name}'"
    if mechanism.score.form not in ("dot", "cosine", "features") or mechanism.bias_stages:
        return f"needs scores that are a dot product and no more, not '{mechanism.score.name}'"
    if mechanism.cap is not None:
        return f"needs scores that are linear in the keys; '{mechanism.cap}' is not"
    if mechanism.forget is not None and not (request.causal and mechanism.causal.where == "before"):
        return f"lets the past fade in one direction, under a causal mask; '{mechanism.forget}' fades in both here"
    if request.hides_pairs:
        return "sums over keys once for all queries; this mask differs between queries"
    return "never forms the weights that dropout acts on" if request.dropout else None


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score, stage, visibility = call.mechanism.score, call.mechanism.weights, call.visibility
    p = call.params_of(score)
    q, k = make_factors(score, call.q, call.k, p) if score.form == "features" else (call.q, call.k)
    scale = 1.0 if score.form == "features" else score.scale_factor(q.shape[-1], p)
    v, divisor = divide_values(call)
    # Fixed factors go into the sums, learned ones multiply the result.
    factor = None
    if not isinstance(scale, Tensor) and scale != 1:
        factor = torch.full((1, 1, 1, 1), scale, dtype=at_least_float(v.dtype), device=v.device)
    if isinstance(divisor, Tensor) and stage.divide != "learned":
        factor, divisor = 1 / divisor if factor is None else factor / divisor, None
    if visibility.mask is not None:
        v = v.masked_fill(~visibility.mask.mT, 0)
    if call.decay is not None:
        out = _sum_with_decay(call, q, k, v)
        out = out if factor is None else out * factor
    else:
        is_causal = visibility.causal and call.q.shape[2] > 1
        offset = visibility.offset if is_causal else None
        out = _sum_over_keys(q, k, v, factor, score.form == "cosine", offset)
    out = out * scale if isinstance(scale, Tensor) else out
    return divide(out, divisor).to(v.dtype)


def _sum_with_decay(call: Call, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Sum over the keys up to each query, the earlier the less."""
    assert call.decay is not None
    wide, offset = at_least_float(q.dtype), call.visibility.offset
    q, k = (unit(q), unit(k)) if call.mechanism.score.form == "cosine" else (q, k)
    q, k, v = (x.to(wide) for x in (q, k, v))
    decay = call.decay.keys.to(wide).expand(*k.shape[:3], -1)
    empty = v.new_zeros(*q.shape[:2], max(0, -offset), v.shape[3])
    return torch.cat([empty, sum_with_decay(q[:, :, max(0, -offset) :], k, v, decay, max(0, offset))], 2)


def _sum_over_keys(
    q: Tensor, k: Tensor, v: Tensor, factor: Tensor | None, is_unit: bool, offset: int | None
) -> Tensor:  # fmt: skip
    """Sum over the keys a query sees: all of them, or with an offset those up to its position; no factor is 1."""
    if offset is not None and offset < 0:
        empty_rows = v.new_zeros(*q.shape[:2], -offset, v.shape[3])
        factor = factor[:, :, -offset:] if factor is not None and factor.shape[2] > 1 else factor
        return torch.cat([empty_rows, _sum_over_keys(q[:, :, -offset:], k, v, factor, is_unit, 0)], 2)
    # Sums grow over the whole length, so they are at least in fp32.
    wide = at_least_float(q.dtype)
    q, k, v = (x.to(wide) for x in (q, k, v))
    if offset == 0 and q.shape[2] <= CHUNK:
        # A single chunk needs only its pairs, not the state that a next chunk would start from.
        q, k = (unit(q), unit(k)) if is_unit else (q, k)
        q = q if factor is None else q * factor.to(wide)
        return (q @ k.mT).tril() @ v
    if offset:
        past, k = k[:, :, :offset], k[:, :, offset:]
        state = (unit(past) if is_unit else past).mT @ v[:, :, :offset]
        v = v[:, :, offset:]
    else:
        state = q.new_zeros(*q.shape[:2], q.shape[3], v.shape[3])
    factor = None if factor is None else factor.to(wide).expand(*q.shape[:3], 1).flatten(0, 1).contiguous()
    flat = [x.flatten(0, 1).contiguous() for x in (q, k, v, state)]
    out: Tensor
    out, _ = running(*flat, factor, is_unit, offset is not None)
    return out.view(*q.shape[:3], v.shape[3])


@dataclass(frozen=True)
class LinearState:
    """The state of decoding: Σ k vᵀ [b h d e] and the number of tokens in it."""

    sums: Tensor
    count: int


def step(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, state: LinearState | None, p: Params,
    x: Tensor | None = None,
) -> tuple[Tensor, LinearState]:  # fmt: skip
    """Attend with one more token, [b h 1 d] each, in time and memory that do not depend on the number before it.

    x: the layer's input at the token, [b 1 m], if the past fades by it, or the delta rule writes by it.
    """
    reason = _refuse_step(mechanism)
    if reason:
        raise KernelError(f"'{mechanism}' cannot be decoded with a constant state: {reason}")
    count = 1 if state is None else state.count + 1
    if mechanism.positions.rotates:
        place = torch.full((1, 1, 1), count - 1, device=q.device)
        q, k = mechanism.positions.rotate(q, place), mechanism.positions.rotate(k, place)
    for stage in mechanism.features:
        own = mechanism.params_of(stage, p)
        q, k = stage(q, "q", own), stage(k, "k", own)
    score, weights = mechanism.score, mechanism.weights
    forget, delta = mechanism.forget, mechanism.delta
    wide = at_least_float(q.dtype)
    sums = k.new_zeros(*k.shape[:2], k.shape[3], v.shape[3] + (weights.divide == "sum"), dtype=wide)
    sums = sums if state is None else state.sums
    if forget is not None:
        sums = sums * forget.log_kept(x, mechanism.params_of(forget, p), k).to(wide).exp().mT
    if delta is not None:
        beta = delta.strengths(x, mechanism.params_of(delta, p), k)
        v = (beta * (v - k.to(wide) @ sums[..., : v.shape[3]])).to(v.dtype)
    q, k = make_factors(score, q, k, mechanism.params_of(score, p))
    n = as_divisor(torch.tensor([[[[count]]]], device=q.device), q.dtype)
    divisor: Divisor = weights.divisor(n, mechanism.params_of(weights, p))
    if weights.divide == "sum":
        v, divisor = functional.pad(v, (0, 1), value=1.0), "sum"
    if weights.divide_at == "key":
        v, divisor = divide(v, divisor), None
    sums = sums + k.to(wide).mT @ v.to(wide)
    return divide(q.to(wide) @ sums, divisor).to(q.dtype), LinearState(sums, count)


def _refuse_step(mechanism: Mechanism) -> str | None:
    """Return why a mechanism cannot be decoded with a constant state, or None."""
    if mechanism.values or mechanism.output or mechanism.heads is not None:
        return "it has values, heads or output stages, which the caller must apply around a step"
    if any(stage.acts_before_positions for stage in mechanism.features):
        return "it has features before positions, which the caller must apply before a step"
    if mechanism.delta is not None and (mechanism.score.form != "dot" or mechanism.weights.divide_at == "key"):
        return "the delta rule recalls by the dot products of keys, with values that are not divided"
    return refusal(Request(mechanism, 1, 1, causal=True))
