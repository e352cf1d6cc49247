"""Seven stages of a new user, written by CONTRIBUTING.md alone, and for each the formula of one query, written apart.

They depend on positions, mix heads, or normalise in ways of their own. `register` makes them known; a test that calls
it takes the fixture `own_stages`. `attend_by_formula` computes every row from the keys that its query sees and nothing
else: no kernel, no mask, no block, no stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from attnlab.mechanisms import (
    Dims,
    Parameter,
    Params,
    Positions,
    Score,
    Weights,
    argument,
    masked_softmax,
    stage,
)


def register() -> None:
    """Register the seven stages; `by_sum` normalises what `elu_plus_one` scores."""

    @stage("relative_bias")
    @dataclass(frozen=True)
    class RelativeBias(Score):
        """q·k/√d + b_h(i−j), a learned number for each distance up to `reach`, clipped beyond it."""

        reach: int = argument(6, at_least=1)

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"bias": Parameter((dims.num_heads, 2 * self.reach + 1), -1.0, 1.0)}

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            index = positions.distances.clamp(-self.reach, self.reach) + self.reach  # [b 1 q k]
            bias = p["bias"][:, index[:, 0]].transpose(0, 1)  # [b h q k]
            return torch.add(q @ k.mT / q.shape[-1] ** 0.5, bias)

    @stage("near")
    @dataclass(frozen=True)
    class Near(Weights):
        """Softmax over the keys less than `width` away."""

        width: int = argument(5, at_least=1)

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            return masked_softmax(scores, visible & (positions.distances.abs() < self.width))

    @stage("twin_heads")
    @dataclass(frozen=True)
    class Differential(Weights):
        """A₁ − λA₂ for the heads of each pair, which have the values of the pair (Ye et al. 2024)."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"share": Parameter((dims.num_heads,), 0.2, 0.8)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            w = masked_softmax(scores, visible).unflatten(1, (-1, 2))
            share = p["share"].unflatten(0, (-1, 2))[:, 0, None, None]
            return torch.repeat_interleave(w[:, :, 0] - share * w[:, :, 1], 2, 1)

    @stage("key_forget")
    @dataclass(frozen=True)
    class KeyForget(Score):
        """q·k/√d + Σ_{l=j+1..i} log σ(w·k_l + b): what lies between query and key lets the key fade."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {
                "weight": Parameter((dims.num_heads, dims.head_dim), -0.5, 0.5),
                "bias": Parameter((dims.num_heads,), 1.0, 1.0),
            }

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            gate = functional.logsigmoid((k * p["weight"][:, None]).sum(-1) + p["bias"][:, None])
            past = visible & (positions.distances >= 0)
            faded = (gate[:, :, None] * past).cumsum(-1)
            return torch.add(q @ k.mT / q.shape[-1] ** 0.5, faded[..., -1:] - faded)

    @stage("log_n")
    @dataclass(frozen=True)
    class LogN(Weights):
        """Softmax of s·z·log n, z learned per head: as sharp for long rows as for short ones."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"scale": Parameter((dims.num_heads,), 0.3, 0.9)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return masked_softmax(scores * p["scale"][:, None, None] * n.log(), visible)

    @stage("elu_plus_one")
    @dataclass(frozen=True)
    class EluPlusOne(Score):
        """φ(q)·φ(k) with φ = elu + 1 (Katharopoulos et al. 2020)."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (functional.elu(q) + 1) @ (functional.elu(k) + 1).mT

    @stage("by_sum")
    @dataclass(frozen=True)
    class BySum(Weights):
        """s_ij / (Σ_j s_ij + ε)."""

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return scores / ((scores * visible).sum(-1, keepdim=True) + 1e-6)

    @stage("mixed_heads")
    @dataclass(frozen=True)
    class TalkingHeads(Weights):
        """Scores mixed over heads, softmax, and weights mixed over heads (Shazeer et al. 2020)."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            square = (dims.num_heads, dims.num_heads)
            return {"before": Parameter(square, -0.5, 0.5), "after": Parameter(square, -0.5, 0.5)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            mixed = torch.einsum("bhqk,hg->bgqk", scores, p["before"])
            return torch.einsum("bhqk,hg->bgqk", masked_softmax(mixed, visible), p["after"])


LINES = {
    "relative bias": "relative_bias | softmax",
    "window": "dot | near",
    "twin_heads": "dot | twin_heads",
    "key-gated forgetting": "key_forget | softmax",
    "log-n temperature": "dot | log_n",
    "elu+1 linear": "elu_plus_one | by_sum",
    "talking heads": "dot | mixed_heads",
}
"""The seven mechanisms, by the name of their idea."""


def row_weights(name: str, q: Tensor, k: Tensor, distance: Tensor, p: Mapping[str, Tensor]) -> Tensor:
    """Return the weights [h m] of one query q [h d] over the m keys [h m d] it sees, at distances i − j [m]."""
    s = torch.einsum("hd,hmd->hm", q, k) / q.shape[-1] ** 0.5
    m = k.shape[1]
    if name == "relative bias":
        table = p["relative_bias_bias"]
        reach = (table.shape[1] - 1) // 2
        offsets = [max(-reach, min(reach, int(x))) + reach for x in distance]
        return torch.softmax(s + table[:, offsets], -1)
    if name == "window":
        inside = [j for j in range(m) if abs(int(distance[j])) < 5]
        w = torch.zeros_like(s)
        if inside:
            w[:, inside] = torch.softmax(s[:, inside], -1)
        return w
    if name == "twin_heads":
        a, share = torch.softmax(s, -1), p["twin_heads_share"]
        return torch.stack([a[h - h % 2] - share[h - h % 2] * a[h - h % 2 + 1] for h in range(len(a))])
    if name == "key-gated forgetting":
        gate = torch.sigmoid(torch.einsum("hmd,hd->hm", k, p["key_forget_weight"]) + p["key_forget_bias"][:, None])
        fade = [
            sum((gate[:, i].log() for i in range(m) if distance[j] > distance[i] >= 0), torch.zeros(len(q)).to(q))
            for j in range(m)
        ]
        return torch.softmax(s + torch.stack(fade, -1), -1)
    if name == "log-n temperature":
        return torch.softmax(s * p["log_n_scale"][:, None] * torch.tensor(m).to(s).log(), -1)
    if name == "elu+1 linear":
        phi = [torch.where(x > 0, x + 1, x.exp()) for x in (q, k)]
        w = torch.einsum("hd,hmd->hm", *phi)
        return w / (w.sum(-1, keepdim=True) + 1e-6)
    assert name == "talking heads"
    mixed = p["mixed_heads_before"].mT @ s
    return p["mixed_heads_after"].mT @ torch.softmax(mixed, -1)


def attend_by_formula(
    name: str, q: Tensor, k: Tensor, v: Tensor, seen: Callable[[int, int, int], bool],
    where: tuple[Tensor, Tensor], p: Mapping[str, Tensor],
) -> Tensor:  # fmt: skip
    """Attend row by row; seen(b, i, j) says whether query i sees key j, `where` the positions [b q] and [b k]."""
    queries, keys = where
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    out = q.new_zeros(*q.shape[:3], v.shape[3])
    for b in range(q.shape[0]):
        for i in range(q.shape[2]):
            chosen = [j for j in range(k.shape[2]) if seen(b, i, j)]
            if chosen:
                distance = queries[b, i] - keys[b, chosen]
                w = row_weights(name, q[b, :, i], k[b][:, chosen], distance, p)
                out[b, :, i] = torch.einsum("hm,hmd->hd", w, v[b][:, chosen])
    return out
