"""Scores as weights are linear in the keys: Σ_j (q_i·k_j) v_j = q_i · Σ_j k_j v_jᵀ, so the pairs need never be formed.

Bidirectional by associativity; causal by chunks, each with the state Σ k vᵀ of those before it; and one token at a
time with that state alone. All three are the same function.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.errors import KernelError
from attnlab.mechanisms import Mechanism, Params
from attnlab.mechanisms.scores import Cosine, Dot
from attnlab.mechanisms.weights import Identity

from .blockwise import factors
from .call import Call, Request
from .chunked import causal
from .division import divided, divided_values, length

NAME = "linear"
FORM = "a running sum of key-value products, O(n)"

def refusal(request: Request) -> str | None:
    """Refuse what is not linear in keys and values, or not the same for every query."""
    mechanism = request.mechanism
    if not isinstance(mechanism.weights, Identity):
        return f"needs identity weights, not '{mechanism.weights.name}'"
    if not isinstance(mechanism.score, Dot | Cosine):
        return f"needs dot or cosine scores, not '{mechanism.score.name}'"
    if request.mask == "pairs":
        return "sums over keys once for all queries; this mask gives each query its own keys"
    return "never forms the weights that dropout acts on" if request.dropout else None


def attend(call: Call) -> Tensor:
    """Return weights·values."""
    score, visibility = call.mechanism.score, call.visibility
    q, k = factors(score, call.q, call.k, call.params_of(score))
    v, divisor = divided_values(call)
    if visibility.mask is not None:
        v = v.masked_fill(~visibility.mask.mT, 0)
    if not visibility.causal or q.shape[2] == 1:
        out = q @ (k.mT @ v)
    else:
        out = causal(q, k, v, visibility.offset).to(v.dtype)
    return divided(out, divisor)


@dataclass(frozen=True)
class State:
    """What decoding carries from token to token: Σ k vᵀ [b h d e] and the number of tokens seen."""

    sums: Tensor
    count: int


def step(mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, state: State | None, p: Params) -> tuple[Tensor, State]:
    """Attend with one more token, [b h 1 d] each, in time and memory that do not depend on how many went before."""
    reason = refusal(Request(mechanism, 1, 1, causal=True))
    if reason:
        raise KernelError(f"'{mechanism}' cannot be decoded with a constant state: {reason}")
    count = 1 if state is None else state.count + 1
    score, weights = mechanism.score, mechanism.weights
    q, k = factors(score, q, k, mechanism.params_of(score, p))
    divisor = weights.divisor(length(torch.tensor([[[[count]]]], device=q.device), q.dtype), mechanism.params_of(weights, p))
    if weights.divide_at == "key":
        v, divisor = divided(v, divisor), None
    sums = k.mT @ v if state is None else state.sums + k.mT @ v
    return divided(q @ sums, divisor), State(sums, count)
