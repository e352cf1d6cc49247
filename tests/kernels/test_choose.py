"""Which kernel is chosen, that it is explained, and that nothing is substituted silently."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab import attend, explain
from attnlab.cli.explain import print_explanation
from attnlab.errors import KernelError, ParameterError, RequestError
from attnlab.kernels import KERNELS
from attnlab.kernels.cpu import native
from attnlab.mechanisms import Dims, LayerInput, Parameter, Params, Score, Value, Weights, masked_softmax, stage

CHOICES = {
    "dot | softmax": "sdpa",
    "cosine(scale=learned) | softmax": "sdpa",
    "euclidean | softmax": "sdpa",
    "additive | softmax": "additive",
    "additive | relu": "additive",
    "manhattan | softmax": "distance",
    "minkowski(p=learned) | sigmoid": "distance",
    "euclidean(squared=false) | softmax": "distance",
    "dot | relu": "blockwise",
    "dot | sigmoid": "blockwise",
    "angle | softmax": "blockwise",
    "dot | sparsemax": "blockwise",
    "euclidean | relu": "blockwise",
    "dot | identity": "linear",
    "cosine | identity(divide=learned)": "linear",
    "dot | softmax | mask(after)": "rowwise",
    "dot | sigmoid | mask(zero)": "rowwise",
    "dot | relu | mask(after)": "blockwise",
    "dot | argmax(straight_through=true)": "rowwise",
    "dot | softmax | window(64)": "banded",
    "additive | relu | chunk(32) | top_k(4)": "banded",
    "dot | softmax | window(600)": "sdpa",
    "dot | softmax | mask(after) | window(64)": "rowwise",
    "dot | softmax | top_k(4)": "rowwise",
}


@pytest.mark.parametrize("line", CHOICES)
def test_the_fastest_kernel_that_can_is_chosen_and_explained(line: str) -> None:
    found = explain(line, length=512, causal=True)
    assert found.kernel == CHOICES[line]
    assert all(found.refused.values())
    # Without a mask stage, nobody asks why the kernel of windows was not chosen.
    names = [name for name in KERNELS if name != "banded" or found.request.mechanism.mask]
    assert list(found.refused) == names[: names.index(found.kernel)]
    assert found.kernel in str(found)
    assert line in str(found)
    assert found.cost.operations > 0
    assert found.cost.work_bytes > 0


def test_explanations_follow_the_situation() -> None:
    assert explain("dot | softmax", length=64, dropout=0.1).kernel == "blockwise"
    assert explain("cosine | identity", length=64, mask="pairs").kernel == "blockwise"
    assert explain("additive | softmax", length=64, device="cuda").kernel == "rowwise"
    assert explain("cosine | identity", length=64).cost.exponent == 1
    assert explain("dot | relu", length=64).cost.exponent == 2
    assert explain("dot | softmax", length=64, kernel="reference").kernel == "reference"


@pytest.mark.parametrize("line", ["dot | softmax", "cosine | identity", "dot | argmax(straight_through=true)"])
def test_only_scores_of_the_compiled_loops_ask_for_a_compiler(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise AssertionError("a compiler was asked for")

    monkeypatch.setattr(native, "load_loops", fail)
    x, mask = torch.ones(1, 1, 3, 2), torch.tensor([True, True, False])
    for given in (None, mask):
        attend(x, x, x, line, causal=True, mask=given)
    assert explain(line, length=8).kernel == explain(line, length=8, mask="keys").kernel


def test_a_kernel_that_cannot_is_an_error_that_names_those_that_can() -> None:
    q = torch.zeros(1, 1, 3, 2)
    with pytest.raises(KernelError, match=r"(?s)linear.*softmax.*one that can: sdpa, blockwise, rowwise, reference"):
        attend(q, q, q, "dot | softmax", kernel="linear")


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("dot | softmax | share(qk)", "ties a model's projections"),
        ("dot | softmax | token_dropout(0.1)", "training=True"),
        ("dot | softmax | bypass(alpha=0.5, layers=0-2)", "act in a model"),
        ("dot | softmax | value_residual", "first="),
        ("dot | softmax | penalize(output, 0.1)", "Attention.penalty"),
    ],
)
def test_stages_that_act_elsewhere_are_noted(line: str, note: str) -> None:
    assert note in str(explain(line, length=8))
    assert not explain("dot | softmax", length=8).notes


@pytest.mark.parametrize(
    ("change", "says"), [({"mask": "pad"}, "none, keys, pairs"), ({"dtype": "fp32"}, "torch dtype")]
)
def test_what_explain_cannot_read_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        explain("dot | softmax", length=8, **change)


def test_the_default_length_is_that_of_the_command() -> None:
    default = inspect.signature(print_explanation).parameters["length"].default
    assert explain("dot | softmax").request == explain("dot | softmax", length=default).request


def test_a_model_is_answered_with_what_to_give_instead() -> None:
    with pytest.raises(RequestError, match=r"takes a mechanism, not a Linear; for a model, give attnlab\.describe"):
        explain(torch.nn.Linear(1, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"length": 0}, {"length": 2.5}, {"length": 8, "head_dim": -1}])
def test_sizes_that_are_none_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="positive integer"):
        explain("dot | softmax", **change)


@pytest.mark.usefixtures("own_stages")
def test_advice_names_the_class_and_what_to_declare() -> None:
    @stage("own_score")
    @dataclass(frozen=True)
    class OwnScore(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return q @ k.mT

    @stage("own_weights")
    @dataclass(frozen=True)
    class OwnWeights(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.square()

    both = explain("own_score | own_weights", length=64)
    score, weights = both.advice
    assert score.startswith("OwnScore declares no form")
    assert 'form = "features"' in score
    assert "bias_of" in score
    assert weights.startswith("OwnWeights declares neither pointwise nor tile_rule")
    assert "pointwise = True" in weights
    assert f"  faster   {score}\n  faster   {weights}" in str(both)
    assert explain("dot | own_weights", length=64).advice == (weights,)
    # While heads mix pairs, a declaration of the weights would change nothing; and a softmax has declared what it is.
    assert explain("dot | own_weights | talking_heads", length=64).advice == ()
    softmax = type("OwnSoftmax", (OwnWeights,), {"is_softmax": True, "__call__": OwnWeights.__call__})
    stage("own_softmax")(dataclass(frozen=True)(softmax))
    assert explain("own_score | own_softmax", length=64).advice == (score,)
    for line in ("dot | softmax | mask(after)", "dot | argmax(straight_through=true)"):
        assert explain(line, length=64, causal=True).kernel == "rowwise"
        assert explain(line, length=64, causal=True).advice == ()


@pytest.mark.usefixtures("own_stages")
def test_a_stage_that_needs_x_is_advised_to_forget_and_nothing_that_changes_nothing() -> None:
    @stage("fading_score")
    @dataclass(frozen=True)
    class FadingScore(Score):
        """Forgetting written as a score."""

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, x: LayerInput, visible: Tensor) -> Tensor:
            log_kept = (-x.keys.mean(-1).square()[:, None, None] * visible).cumsum(-1)
            return torch.add(q @ k.mT, log_kept[..., -1:] - log_kept)

    @stage("by_x")
    @dataclass(frozen=True)
    class ByX(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, x: LayerInput, visible: Tensor) -> Tensor:
            return masked_softmax(scores * x.queries.mean(-1)[:, None, :, None], visible)

    @stage("own_score")
    @dataclass(frozen=True)
    class OwnScore(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return q @ k.mT

    (advice,) = explain("fading_score | argmax", length=64, causal=True).advice
    assert advice.startswith("FadingScore requests x")
    assert "derived from attnlab.Forget, with log_kept(x, p, k)" in advice
    assert "declare" not in advice
    assert explain("own_score | by_x", length=64).advice == ()


@pytest.mark.usefixtures("own_stages")
def test_the_cost_says_whose_call_it_does_not_contain() -> None:
    @stage("negsq")
    @dataclass(frozen=True)
    class Negsq(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return -(q[:, :, :, None] - k[:, :, None]).square().sum(-1)

    @stage("halved")
    @dataclass(frozen=True)
    class Halved(Value):
        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return t / 2

    assert "time grows as n^2, without what 'negsq' computes itself (" in str(explain("negsq | softmax", 512))
    both = explain("negsq | softmax | halved", 512)
    assert both.uncounted == ("negsq", "halved")
    assert "without what 'negsq' and 'halved' compute themselves" in str(both)
    assert explain("dot | softmax | bypass", 512).uncounted == ()


@pytest.mark.usefixtures("own_stages")
def test_a_parameter_without_the_heads_is_refused_as_by_attend() -> None:
    @stage("stretched")
    @dataclass(frozen=True)
    class Stretched(Score):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"factor": Parameter((dims.head_dim,), 1.0, 1.0)}

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return q * p["factor"] @ k.mT

    q, k, v = torch.randn(3, 1, 4, 5, 64)
    sentences = []
    for refuse in (lambda: attend(q, k, v, "stretched | softmax"), lambda: explain("stretched | softmax", 5)):
        with pytest.raises(
            ParameterError, match=r"has shape \(64,\); the first axis must be the heads, here 4"
        ) as error:
            refuse()
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]


@pytest.mark.usefixtures("own_stages")
def test_a_stage_that_declares_everything_is_told_so() -> None:
    @stage("square_weights")
    @dataclass(frozen=True)
    class SquareWeights(Weights):
        pointwise = True
        keeps_zero = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.square()

    explanation = explain("dot | square_weights", 512)
    assert explanation.advice == ()
    assert str(explanation).endswith(
        "  faster   nothing more can be declared: no trait of your stages would give a faster kernel"
    )
    assert "faster" not in str(explain("dot | relu", 512))
    assert "nothing more" not in str(explain("dot | square_weights", 512, kernel="reference"))
