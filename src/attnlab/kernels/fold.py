"""Rewrite a call so that kernels need not know some stages: the same function, of other q, k and v.

A decay that is added to the scores of a causal row becomes two more channels, [q, F_i, 1]·[k, 1, −F_j], so that every
kernel for dot products serves it. The delta rule becomes other values.
"""

import dataclasses

import torch

from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.scores import Dot

from .blockwise import make_factors
from .call import Call, Request, at_least_float
from .gated import correct_values

FOLDED = Dot(scale=1.0)


def _adds_decay(mechanism: Mechanism, causal: bool) -> bool:
    """Tell whether a decay can be two channels of a dot product."""
    is_product = mechanism.score.form in ("dot", "cosine", "features") and mechanism.score.bias_of is None
    mixes_pairs = mechanism.heads is not None and mechanism.heads.mixes_pairs
    is_added = mechanism.forget is not None and not mechanism.weights.pointwise
    is_causal = causal and mechanism.causal.where == "before"
    return is_added and is_product and is_causal and mechanism.cap is None and not mixes_pairs


def fold(call: Call) -> Call:
    """Return the call that kernels other than the reference compute."""
    mechanism = call.mechanism
    if mechanism.delta is not None:
        assert call.beta is not None
        wide = at_least_float(call.v.dtype)
        decay = None if call.decay is None else call.decay.keys.to(wide)
        values = correct_values(call.k.to(wide), call.v.to(wide), call.beta.to(wide), decay).to(call.v.dtype)
        mechanism = dataclasses.replace(mechanism, delta=None)
        call = dataclasses.replace(call, mechanism=mechanism, v=values, beta=None)
    if not _adds_decay(mechanism, call.visibility.causal):
        return call
    assert call.decay is not None
    score = mechanism.score
    # In fp32 at least: the sums grow with the length, and their difference counts.
    wide = at_least_float(call.q.dtype)
    q, k = make_factors(
        score, call.q.to(wide), call.k.to(wide), {n: p.to(wide) for n, p in call.params_of(score).items()}
    )
    ones = q.new_ones(())
    rows, columns = (
        x.to(wide).expand(*like.shape[:3], 1) for x, like in ((call.decay.queries, q), (call.decay.keys, k))
    )
    q = torch.cat([q, rows, ones.expand_as(rows)], -1)
    k = torch.cat([k, ones.expand_as(columns), -columns], -1)
    folded = dataclasses.replace(mechanism, score=FOLDED, forget=None)
    return dataclasses.replace(call, mechanism=folded, q=q, k=k, v=call.v.to(wide), decay=None)


def adapt_request(request: Request) -> Request:
    """Return the request that a call with this one makes of a kernel: with stages applied and folded."""
    mechanism, head_dim, value_dim = request.mechanism, request.head_dim, request.value_dim
    for stage in mechanism.features:
        head_dim = stage.width(head_dim)
    if mechanism.heads is not None:
        value_dim = mechanism.heads.spread_values(torch.empty(0, request.num_heads, 0, value_dim)).shape[-1]
    dtype = request.dtype
    if mechanism.delta is not None:
        mechanism = dataclasses.replace(mechanism, delta=None)
    if _adds_decay(mechanism, request.causal):
        mechanism = dataclasses.replace(mechanism, score=FOLDED, forget=None)
        head_dim, dtype = head_dim + 2, at_least_float(dtype)
    return dataclasses.replace(request, mechanism=mechanism, head_dim=head_dim, value_dim=value_dim, dtype=dtype)
