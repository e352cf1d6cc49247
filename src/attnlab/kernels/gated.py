"""Causal sums over keys whose past fades, and the values of the delta rule, chunk by chunk: time grows with n.

    out_i = q_i · Σ_{j ≤ i} exp(F_i − F_j) k_jᵀ v_j        u_i = β_i (v_i − Σ_{j<i} exp(F_i − F_j) (k_i·k_j) u_j)

Pairs are formed within a chunk; the chunks before it enter as one state Σ exp(B − F_j) k_jᵀ v_j, with B the F at which
the chunk begins. F falls, so every exponent is at most 0 and nothing overflows. Autograd differentiates the sums.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

CHUNK = 64
"""Tokens per chunk."""

CHANNEL_CHUNK = 16
"""Tokens per chunk for a decay per channel that is too strong to be a factor of q and k: it forms an exponential for
each pair and channel."""

CHUNKS = 32
"""Chunks that are processed at once; their states are one product with a matrix of decays between them."""

RANGE = 60.0
"""The largest fall of F within a chunk for which exp(F_i − M) and exp(M − F_j) are computed apart: e^60 and its square
stay far below the largest number of fp32."""


def sum_with_decay(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, offset: int) -> Tensor:
    """Return out [b h q e] of q [b h q d], k [b h k d], v [b h k e] and F of the keys [b h k c].

    offset: the number of keys before the first query; the last query is at the last key.
    """
    state, base = make_state(k[:, :, :offset], v[:, :, :offset], decay[:, :, :offset])
    k, v, decay = (x[:, :, offset:] for x in (k, v, decay))
    is_pairwise = decay.shape[-1] > 1 and not _is_gentle(decay)
    size = CHANNEL_CHUNK if is_pairwise else CHUNK
    parts = []
    # Not by slices, whose gradients would each be as long as the whole.
    spans = (x.split(size * CHUNKS, 2) for x in (q, k, v, decay))
    for q_part, k_part, v_part, decay_part in zip(*spans, strict=True):
        given = (q_part, k_part, v_part, decay_part, state, base, is_pairwise)
        if is_pairwise and torch.is_grad_enabled():
            out, state, base = checkpoint(_sum_span, *given, use_reentrant=False)
        else:
            out, state, base = _sum_span(*given)
        parts.append(out)
    return torch.cat(parts, 2)


def _is_gentle(decay: Tensor) -> bool:
    """Tell whether F [b h n d] falls by less than `RANGE` within every chunk; unknown while tracing."""
    if torch.compiler.is_compiling() or not decay.shape[2]:
        return False
    chunks = _cut_decay(decay.detach(), CHUNK)
    return bool((chunks[:, :, :, 0] - chunks[:, :, :, -1]).max() < RANGE)


def make_state(k: Tensor, v: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ exp(B − F_j) k_jᵀ v_j over all these keys, [b h d e], and B, the F of the last, [b h 1 c]."""
    if not k.shape[2]:
        return k.new_zeros(*k.shape[:2], k.shape[3], v.shape[3]), decay.new_zeros(*decay.shape[:2], 1, decay.shape[3])
    base = decay[:, :, -1:]
    return (k * _fade(base - decay)).mT @ v, base


def _fade(fall: Tensor) -> Tensor:
    """Return e^fall, 0 if that is no normal number: a processor multiplies smaller ones many times more slowly."""
    return fall.masked_fill(fall < math.log(torch.finfo(fall.dtype).tiny), -torch.inf).exp()


def _cut(x: Tensor, size: int) -> Tensor:
    """Return [b h n d] as chunks [b h m size d], filled with zeros."""
    x = functional.pad(x, (0, 0, 0, -x.shape[2] % size))
    chunks: Tensor = x.unflatten(2, (-1, size))
    return chunks


def _cut_decay(decay: Tensor, size: int) -> Tensor:
    """Return F in chunks; tokens that fill the last chunk forget nothing."""
    missing = -decay.shape[2] % size
    filled = torch.cat([decay, decay[:, :, -1:].expand(-1, -1, missing, -1)], 2)
    chunks: Tensor = filled.unflatten(2, (-1, size))
    return chunks


def _decay_within(decay: Tensor, diagonal: int = 0) -> Tensor:
    """Return exp(F_i − F_j) for j ≤ i in a chunk, else 0: [b h m i j], or with channels [b h m i j d]."""
    is_single = decay.shape[-1] == 1
    fall = decay - decay.mT if is_single else decay[..., :, None, :] - decay[..., None, :, :]
    later = torch.ones(decay.shape[3], decay.shape[3], dtype=torch.bool, device=decay.device).triu(1 + diagonal)
    # Before the exponential, which may be infinite there.
    return _fade(fall.masked_fill(later if is_single else later[..., None], -torch.inf))


def _sum_span(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, state: Tensor, base: Tensor, is_pairwise: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum over some tokens; return their output, and the state after them with its F."""
    num_tokens = q.shape[2]
    size = CHANNEL_CHUNK if is_pairwise else CHUNK
    f = _cut_decay(decay, size)
    q, k, v = (_cut(x, size) for x in (q, k, v))
    ends = f[:, :, :, -1:]  # [b h m 1 c]
    starts = torch.cat([base[:, :, None], ends[:, :, :-1]], 2)
    sums = (k * _fade(ends - f)).mT @ v  # [b h m d e]
    before = _states_before(sums, state, starts, ends, base)
    out = _multiply_within(q, k, f, is_pairwise) @ v + (q * _fade(f - starts)) @ before
    last = ends[:, :, -1]
    state = _fade(last - starts[:, :, -1]).mT * before[:, :, -1] + sums[:, :, -1]
    return out.flatten(2, 3)[:, :, :num_tokens], state, last


def _multiply_within(q: Tensor, k: Tensor, f: Tensor, is_pairwise: bool) -> Tensor:
    """Return exp(F_i − F_j) q_i·k_j for j ≤ i within each chunk, [b h m i j]."""
    if f.shape[-1] == 1:
        return (q @ k.mT) * _decay_within(f)
    if is_pairwise:
        return torch.einsum("bhmid,bhmjd,bhmijd->bhmij", q, k, _decay_within(f))
    # Any M cancels; as a constant, it leaves no gradient from later tokens, not even in rounding.
    middle = f[:, :, :, f.shape[3] // 2, None].detach()
    return ((q * _fade(f - middle)) @ (k * _fade(middle - f)).mT).tril()


def _states_before(sums: Tensor, state: Tensor, starts: Tensor, ends: Tensor, base: Tensor) -> Tensor:
    """Return the state at the start of each chunk, [b h m d e]."""
    num = sums.shape[2]
    later = torch.ones(num, num, dtype=torch.bool, device=sums.device).triu()
    first = _fade(starts - base[:, :, None]).mT * state[:, :, None]
    starts, ends = starts[:, :, :, 0], ends[:, :, :, 0]  # [b h m c]
    if starts.shape[-1] == 1:
        between = _fade((starts - ends.mT).masked_fill(later, -torch.inf))
        earlier: Tensor = (between @ sums.flatten(3)).unflatten(-1, sums.shape[3:])
        return first + earlier
    between = _fade((starts[:, :, :, None] - ends[:, :, None]).masked_fill(later[..., None], -torch.inf))
    return first + torch.einsum("bhijd,bhjde->bhide", between, sums)


def correct_values(k: Tensor, v: Tensor, beta: Tensor, decay: Tensor | None) -> Tensor:
    """Return u of the delta rule, [b h n e], of k [b h n d], v [b h n e], β and F [b h n 1]; no F is 0."""
    num_tokens = k.shape[2]
    decay = torch.zeros_like(beta) if decay is None else decay.expand(*k.shape[:3], 1)
    f = _cut_decay(decay, CHUNK)
    k, v, beta = (_cut(x, CHUNK) for x in (k, v, beta))
    ends = f[:, :, :, -1:]
    starts = torch.cat([torch.zeros_like(ends[:, :, :1]), ends[:, :, :-1]], 2)
    matrix = beta * (k @ k.mT) * _decay_within(f, diagonal=-1)
    right = torch.cat([beta * v, beta * _fade(f - starts) * k], -1)
    solved = torch.linalg.solve_triangular(matrix, right, upper=False, unitriangular=True)
    own, recalled = solved.split([v.shape[-1], k.shape[-1]], -1)
    writing = (k * _fade(ends - f)).mT
    fading = _fade(ends - starts)
    state, parts = k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1]), []
    for new, old, write, fade in zip(*(x.unbind(2) for x in (own, recalled, writing, fading)), strict=True):
        parts.append(new - old @ state)
        state = fade * state + write @ parts[-1]
    return torch.cat(parts, 2)[:, :, :num_tokens]
