"""A stage that a user writes, with its own tile rule and schedule, works everywhere without a change in attnlab."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError, ShapeError
from attnlab.install import set_progress
from attnlab.mechanisms import Forget, HeadMixing, Params, Positions, Score, TileRule, Value, Weights, argument, stage
from tests.install.models import build, tokens

pytestmark = pytest.mark.usefixtures("stages")


@pytest.fixture
def stages(own_stages: None) -> None:
    @stage("squared_relu")
    @dataclass(frozen=True)
    class SquaredRelu(Weights):
        """strength · max(s, 0)², with a strength that grows during training."""

        pointwise: ClassVar[bool] = True
        keeps_zero: ClassVar[bool] = True

        strength: float = argument(1.0, at_least=0)

        def at(self, progress: float) -> Self:
            return dataclasses.replace(self, strength=self.strength * progress)

        @property
        def tile_rule(self) -> TileRule:
            return TileRule(
                0,
                lambda s: s.relu_().square_().mul_(self.strength),
                lambda dw, w, _: dw.mul_((w * self.strength).sqrt_().mul_(2)),
            )

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return self.strength * torch.relu(scores).square()

    @stage("soft_step")
    @dataclass(frozen=True)
    class SoftStep(Weights):
        """s²/(1 + s²), whose gradient needs the scores: their sign is not in the weights."""

        pointwise: ClassVar[bool] = True
        keeps_zero: ClassVar[bool] = True

        @property
        def tile_rule(self) -> TileRule:
            return TileRule(
                0,
                self.apply_in_place,
                lambda dw, _, s: dw.mul_(2 * s / (1 + s.square()).square()),  # type: ignore[operator, union-attr]
                needs_scores=True,
            )

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            square = scores.square()
            return square / (1 + square)

    @stage("add_input")
    @dataclass(frozen=True)
    class AddInput(Value):
        """v + share · x, with a share that grows during training."""

        uses_first: ClassVar[bool] = False
        only_adds: ClassVar[bool] = True

        share: float = 0.5

        def at(self, progress: float) -> Self:
            return dataclasses.replace(self, share=self.share * progress)

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return t + self.share * x


LINE = "cosine | squared_relu(strength=2, divide=n) | add_input(share=0.4)"


@pytest.mark.parametrize("weights", ["squared_relu(strength=2)", "squared_relu(divide=sqrt_n)", "soft_step", "gelu"])
@pytest.mark.parametrize("score", ["cosine", "angle", "additive"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["before", "zero"])
def test_it_runs_in_tiles_as_the_reference_does(weights: str, score: str, causal: bool, mask: str) -> None:
    line, kernel = f"{score} | {weights} | mask({mask})", "additive" if score == "additive" else "blockwise"
    assert attnlab.explain(line, length=300, causal=causal).kernel == kernel
    draw = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 300, 8, generator=draw, dtype=torch.float64)
    keys = torch.ones(2, 1, 1, 300, dtype=torch.bool)
    keys[1, ..., 250:] = False
    results = []
    for name in (kernel, "reference"):
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        out = attnlab.attend(leaves[0], leaves[1], leaves[2], line, causal=causal, mask=keys, kernel=name)
        results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("progress", [0.0, 0.25, 1.0])
def test_it_is_scheduled_in_a_model(progress: float) -> None:
    model = attnlab.install(build("bert"), LINE).train()
    with pytest.raises(InstallError, match="changes while training: call"):
        model(tokens())
    model.eval()
    set_progress(model, progress)
    line = f"cosine | squared_relu(strength={2 * progress}, divide=n) | add_input(share={0.4 * progress})"
    fixed = attnlab.install(build("bert"), line).eval()
    set_progress(fixed, 1.0)
    torch.testing.assert_close(model(tokens()).last_hidden_state, fixed(tokens()).last_hidden_state)


def test_it_is_audited() -> None:
    audit = attnlab.audit(LINE)
    assert audit.passed, str(audit)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    model = attnlab.install(build("bert"), LINE).eval()
    set_progress(model, 0.5)
    attnlab.save(model, tmp_path)
    loaded: Any = attnlab.load(tmp_path)
    loaded.eval()
    set_progress(loaded, 0.5)
    torch.testing.assert_close(loaded(tokens()).last_hidden_state, model(tokens()).last_hidden_state)


def test_a_stage_derived_from_a_built_in_one_with_its_own_call_has_none_of_its_traits() -> None:
    from attnlab.mechanisms.weights import Softmax

    @stage("tempered")
    @dataclass(frozen=True)
    class Tempered(Softmax):
        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor | None = None) -> Tensor:
            return super().__call__(scores / 2, n, p, visible=visible)

    assert Tempered().tile_rule is None
    assert not Tempered.is_softmax
    assert attnlab.explain("dot | tempered", length=64).kernel == "rowwise"


def test_a_decay_of_ones_own_is_as_fast_as_the_built_in_one_and_decodes() -> None:
    @stage("halving")
    @dataclass(frozen=True)
    class Halving(Forget):
        """f = 2^(−rate·sigmoid(x_0))."""

        rate: float = argument(0.5, at_least=0)

        def log_kept(self, x: Tensor | None, p: Params, k: Tensor) -> Tensor:
            assert x is not None
            return (-self.rate * torch.sigmoid(x[:, None, :, :1])).expand(-1, k.shape[1], -1, -1)

    assert attnlab.explain("dot | softmax | halving", length=512, causal=True).kernel == "sdpa"
    assert attnlab.explain("dot | identity | halving | delta", length=512, causal=True).kernel == "linear"
    assert attnlab.audit("dot | softmax | halving", causal=True).passed
    model = attnlab.install(build("gpt2", AutoModelForCausalLM), "dot | softmax | halving")
    found = attnlab.audit(model, checks=["leak", "prefix", "padding"])
    assert found.passed, str(found)


def test_a_decay_of_another_shape_is_refused() -> None:
    @stage("flat_decay")
    @dataclass(frozen=True)
    class FlatDecay(Forget):
        def log_kept(self, x: Tensor | None, p: Params, k: Tensor) -> Tensor:
            return -k[..., 0].abs()

    q, k, v = torch.randn(3, 1, 2, 6, 4)
    needed = r"'flat_decay' must return \[batch, heads, length, channels\] = \(1, 2, 6, 1\), not \(1, 2, 6\)"
    with pytest.raises(ShapeError, match=needed):
        attnlab.attend(q, k, v, "dot | softmax | flat_decay", causal=True, x=torch.randn(1, 6, 8))


def test_heads_that_mix_weights_need_no_declaration_and_other_shapes_are_refused() -> None:
    @stage("swapped_heads")
    @dataclass(frozen=True)
    class Swapped(HeadMixing):
        def mix_weights(self, weights: Tensor, p: Params) -> Tensor:
            return weights.flip(1)

    @stage("half_the_heads")
    @dataclass(frozen=True)
    class Half(HeadMixing):
        def combine(self, output: Tensor, p: Params, layer: int) -> Tensor:
            return output[:, ::2]

    @stage("wide_heads")
    @dataclass(frozen=True)
    class Wide(HeadMixing):
        def spread_values(self, v: Tensor) -> Tensor:
            return torch.cat([v, v], -1)

    q, k, v = torch.randn(3, 1, 2, 40, 4)
    weights = attnlab.weights(q, k, "dot | softmax").flip(1)
    torch.testing.assert_close(attnlab.attend(q, k, v, "dot | softmax | swapped_heads"), weights @ v)
    (advice,) = attnlab.explain("dot | softmax | swapped_heads", length=512).advice
    assert "define spread_values(v) and combine(output, p, layer)" in advice
    assert "if every head mixes with every other, that is slower" in advice
    assert attnlab.explain("dot | softmax | talking_heads", length=512).advice == ()
    for name, shape in (("half_the_heads", r"\(1, 1, 40, 4\)"), ("wide_heads", r"\(1, 2, 40, 8\)")):
        needed = rf"'{name}' must return \[batch, heads, length, channels\] = \(1, 2, 40, 4\), not {shape}"
        with pytest.raises(ShapeError, match=needed):
            attnlab.attend(q, k, v, f"dot | softmax | {name}")


def test_a_bias_of_another_shape_is_refused_and_a_wrong_factor_is_named() -> None:
    @stage("flat_bias")
    @dataclass(frozen=True)
    class FlatBias(Score):
        form = "features"
        bias_of = "distances"

        def position_bias(self, positions: Positions, p: Params) -> Tensor:
            return positions.distances[0, 0].to(torch.float32)

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return q @ k.mT + self.position_bias(positions, p)

    @stage("wrong_factor")
    @dataclass(frozen=True)
    class WrongFactor(Weights):
        is_softmax: ClassVar[bool] = True
        has_row_factor: ClassVar[bool] = True

        def row_factor(self, n: Tensor, p: Params) -> Tensor:
            return n.log()

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores * n.log() * 2, -1)

    q, k, v = torch.randn(3, 1, 2, 300, 4)
    with pytest.raises(ShapeError, match=r"position_bias of 'flat_bias' must return \[b h q k\] with q, k = "):
        attnlab.attend(q, k, v, "flat_bias | softmax", causal=True)
    finding = attnlab.audit("dot | wrong_factor", causal=True, checks=["equivalences"]).findings["equivalences"]
    assert (
        "WrongFactor declares is_softmax = True: its weights are a softmax of scores times row_factor"
        in finding.sentence
    )
