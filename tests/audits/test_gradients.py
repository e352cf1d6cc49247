"""Inputs and parameters without a gradient are named; saturation is reported."""

import dataclasses
from typing import ClassVar, Literal

import pytest
from torch import Tensor

from attnlab.mechanisms import Dims, Output, Parameter, Params, Score, Weights, masked_softmax, stage

from .faults import register_cancelling, run_check


def test_saturation_is_reported_for_softmax_and_not_for_cosine() -> None:
    left = {}
    for line in ("dot | softmax", "cosine | softmax"):
        finding = run_check(line, "gradient")
        left[line] = finding.parts[-1].figure
        assert finding.passed
        assert ("saturate" in finding.sentence) == (line == "dot | softmax")
    assert left["dot | softmax"] < 1e-3 < left["cosine | softmax"]


@pytest.mark.usefixtures("own_stages")
def test_a_parameter_that_is_never_used_is_named() -> None:
    @stage("idle")
    @dataclasses.dataclass(frozen=True)
    class Idle(Weights):
        """Softmax with a temperature that was forgotten."""

        pointwise: ClassVar[bool] = False
        kind: Literal["a", "b"] = "a"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"temperature": Parameter((dims.num_heads,), 1.0, 1.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return masked_softmax(scores, visible)

    finding = run_check("dot | idle", "gradient")
    assert not finding.passed
    assert "idle_temperature" in finding.sentence
    assert "idle" in finding.where


@pytest.mark.usefixtures("own_stages")
def test_scores_that_do_not_depend_on_the_query_are_named() -> None:
    @stage("fixed")
    @dataclasses.dataclass(frozen=True)
    class Fixed(Score):
        """The size of a key, whoever asks."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (k * k).sum(-1)[:, :, None, :].expand(-1, -1, q.shape[2], -1)

    finding = run_check("fixed | softmax", "gradient")
    assert "queries" in finding.sentence
    assert "keys" not in finding.sentence
    assert finding.where == "the stage 'fixed'"


@pytest.mark.usefixtures("own_stages")
def test_what_a_gate_of_zero_hides_at_first_is_no_dead_gradient() -> None:
    @stage("opening")
    @dataclasses.dataclass(frozen=True)
    class Opening(Output):
        """The output times a learned number that starts at 0."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"gate": Parameter((dims.num_heads,), 0.0, 0.0)}

        def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
            return output * p["gate"][:, None, None]

    finding = run_check("dot | softmax | opening", "gradient")
    assert finding.passed
    assert "only once training has moved" in finding.sentence


@pytest.mark.usefixtures("own_stages")
def test_a_parameter_that_cancels_has_a_gradient_of_rounding_alone() -> None:
    register_cancelling()
    finding = run_check("dot | heat_sum", "gradient", causal=True)
    assert not finding.passed
    assert finding.sentence.startswith("Parameter 'heat_sum_t' changes nothing: the gradient is rounding")
    assert "heat_sum" in finding.where
    assert run_check("dot | heat_sum(is_added=true)", "gradient", causal=True).passed
