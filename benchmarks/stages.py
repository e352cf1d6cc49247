"""Stages of a user's own: what each declaration is worth, and what a stage costs that declares nothing."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from attnlab.kernels.comparison import Setting, explain_choice, own_step, sdpa_step
from attnlab.kernels.measure import Step, measure, training_step
from attnlab.mechanisms import (
    REGISTRY,
    Dims,
    Mechanism,
    Parameter,
    Params,
    Positions,
    Score,
    Weights,
    masked_softmax,
    stage,
)
from benchmarks.table import Row, Table, at_most, compared, memory_row, sizes, time_row

SETTING = Setting()
LINEAR = "dot | identity"
TARGETS = {
    "dot | bench_square": 2.0,
    "dot | bench_softplus": 2.0,
    "bench_elu | softmax": 2.0,
    "bench_relative | softmax": 2.0,
    "bench_fire | softmax": 2.0,
    "dot | bench_window": 5.0,
    "dot | bench_talking": 5.0,
    "bench_forget | softmax": 5.0,
}
"""The most that each line may take, in times SDPA's; the last three have a stage that declares nothing."""

FEATURES = "bench_elu | identity"
"""Compared with the linear kernel on plain dot products."""


def register() -> None:
    """Register the stages, as a user's file would."""

    @stage("bench_square")
    @dataclass(frozen=True)
    class Square(Weights):
        """max(s, 0)²."""

        pointwise = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.relu(scores).square()

    @stage("bench_softplus")
    @dataclass(frozen=True)
    class SoftPlus(Weights):
        """log(1 + eˢ)."""

        pointwise = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return functional.softplus(scores)

    @stage("bench_elu")
    @dataclass(frozen=True)
    class Elu(Score):
        """φ(q)·φ(k) with φ = elu + 1."""

        form = "features"

        def query_features(self, q: Tensor, p: Params) -> Tensor:
            return functional.elu(q) + 1

        def key_features(self, k: Tensor, p: Params) -> Tensor:
            return functional.elu(k) + 1

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return self.query_features(q, p) @ self.key_features(k, p).mT

    @stage("bench_relative")
    @dataclass(frozen=True)
    class Relative(Score):
        """q·k/√d + b_h(i−j), learned for distances up to 32."""

        form = "features"
        bias_of = "distances"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"bias": Parameter((dims.num_heads, 65), -1.0, 1.0)}

        def query_features(self, q: Tensor, p: Params) -> Tensor:
            return q * float(q.shape[-1] ** -0.5)

        def position_bias(self, positions: Positions, p: Params) -> Tensor:
            return p["bias"][:, positions.distances[:, 0].clamp(-32, 32) + 32].transpose(0, 1)

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return torch.add(self.query_features(q, p) @ k.mT, self.position_bias(positions, p))

    @stage("bench_fire")
    @dataclass(frozen=True)
    class Fire(Score):
        """q·k/√d − c_h·log(1+|i−j|)/log(2+i), c learned."""

        form = "features"
        bias_of = "positions"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"c": Parameter((dims.num_heads,), 0.5, 1.0)}

        def query_features(self, q: Tensor, p: Params) -> Tensor:
            return q * float(q.shape[-1] ** -0.5)

        def position_bias(self, positions: Positions, p: Params) -> Tensor:
            distance = torch.log1p(positions.distances.abs().to(p["c"].dtype))
            scale = torch.log(positions.queries[..., None].clamp(min=0) + 2.0)
            return -p["c"][:, None, None] * (distance / scale)

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return torch.add(self.query_features(q, p) @ k.mT, self.position_bias(positions, p))

    @stage("bench_window")
    @dataclass(frozen=True)
    class Window(Weights):
        """Softmax over the keys less than 64 away."""

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            return masked_softmax(scores, visible & (positions.distances.abs() < 64))

    @stage("bench_talking")
    @dataclass(frozen=True)
    class Talking(Weights):
        """Scores mixed over heads, softmax, weights mixed over heads."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            square = (dims.num_heads, dims.num_heads)
            return {"before": Parameter(square, -0.5, 0.5), "after": Parameter(square, -0.5, 0.5)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            mixed = torch.einsum("bhqk,hg->bgqk", scores, p["before"])
            return torch.einsum("bhqk,hg->bgqk", masked_softmax(mixed, visible), p["after"])

    @stage("bench_forget")
    @dataclass(frozen=True)
    class Forget(Score):
        """q·k/√d + Σ_{l=j+1..i} log σ(w·k_l)."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"weight": Parameter((dims.num_heads, dims.head_dim), -0.5, 0.5)}

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions, visible: Tensor) -> Tensor:
            gate = functional.logsigmoid((k * p["weight"][:, None]).sum(-1))
            faded = (gate[:, :, None] * (visible & (positions.distances >= 0))).cumsum(-1)
            return torch.add(q @ k.mT / q.shape[-1] ** 0.5, faded[..., -1:] - faded)


def table(setting: Setting = SETTING, length: int = 2048, budget: float = 40) -> Table:
    """Compare stages with SDPA, and features under identity weights with plain dot products, in both directions."""
    known = dict(REGISTRY)
    register()
    try:
        rows = [row for causal in (True, False) for row in rows_of(replace(setting, causal=causal), length, budget)]
    finally:
        REGISTRY.clear()
        REGISTRY.update(known)
    return compared(f"Stages of one's own, forward and backward: {sizes(setting, length).partition(', ')[2]}", rows)


def rows_of(setting: Setting, length: int, budget: float) -> list[Row]:
    """Compare in one direction."""
    lines = (*TARGETS, FEATURES, LINEAR)
    steps = {line: own_step(Mechanism.parse(line), length, setting) for line in lines}
    taken = measure({**steps, "sdpa": sdpa_step(length, setting), "elu": _features_step(length, setting)}, budget)
    direction = "causal" if setting.causal else "not causal"
    rows: list[Row] = []
    for line, bound in TARGETS.items():
        kernel = explain_choice(Mechanism.parse(line), length, setting).kernel
        what = f"{line} · {kernel}, {direction}"
        rows.append(time_row(what, taken[line], "SDPA", taken["sdpa"], at_most(bound)))
        rows.append(memory_row(what, taken[line], "SDPA", taken["sdpa"]))
    rows.append(time_row(f"{FEATURES} · linear, {direction}", taken[FEATURES], LINEAR, taken[LINEAR], at_most(1.5)))
    rows.append(time_row(f"elu + 1 of queries and keys alone, {direction}", taken["elu"], LINEAR, taken[LINEAR]))
    return rows


def _features_step(length: int, setting: Setting) -> Step:
    """Return a step that computes and differentiates the features alone: what no kernel can save."""
    return training_step(lambda tokens: functional.elu(tokens) + 1, torch.stack(setting.inputs(length)[:2]))
