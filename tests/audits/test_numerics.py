"""Rows without a visible key, overflow and wrong derivatives are found."""

import dataclasses

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.kernels import rowwise
from attnlab.mechanisms import Dims, Parameter, Params, Score, Value, Weights, stage

from .faults import run_check


def test_a_row_that_sees_nothing_and_still_answers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rowwise.attend
    monkeypatch.setattr(rowwise, "attend", lambda call: right(call) + 1)
    finding = run_check("dot | softmax", "numerics", causal=False)
    assert not finding.passed
    assert "rowwise" in finding.where


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rowwise.attend
    monkeypatch.setattr(rowwise, "attend", lambda call: 2 * right(call) - right(call).detach())
    finding = run_check("dot | softmax", "numerics", causal=False)
    failed = [part.name for part in finding.parts if not part.passed]
    assert failed
    assert all(name.startswith("gradcheck") for name in failed)


@pytest.mark.usefixtures("own_stages")
def test_weights_that_overflow_are_found() -> None:
    @stage("power")
    @dataclasses.dataclass(frozen=True)
    class Power(Weights):
        """exp of scores, divided by their sum, without care for large ones."""

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            e = torch.exp(scores) * visible
            return e / e.sum(-1, keepdim=True)

    finding = run_check("dot | power", "numerics", causal=False)
    assert not finding.passed
    assert "10⁵" in finding.sentence


@pytest.mark.usefixtures("own_stages")
def test_a_wrong_gradient_of_a_parameter_is_found() -> None:
    @stage("backwards")
    @dataclasses.dataclass(frozen=True)
    class Backwards(Value):
        """A factor whose gradient has the wrong sign."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"factor": Parameter((dims.num_heads,), 1.0, 1.0)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            factor = p["factor"][:, None, None]
            return t * (2 * factor.detach() - factor)

    assert not attnlab.audit("dot | softmax | backwards", causal=False, checks=["numerics"]).passed


@pytest.mark.usefixtures("own_stages")
def test_a_distance_whose_gradient_is_lost_at_zero_is_found() -> None:
    @stage("careless_distance")
    @dataclasses.dataclass(frozen=True)
    class CarelessDistance(Score):
        """−‖q − k‖, whose derivative at 0 is not a number."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return -(q[:, :, :, None] - k[:, :, None]).square().sum(-1).sqrt()

    finding = run_check("careless_distance | softmax", "numerics", causal=False)
    assert not finding.passed
    assert "equals its key" in finding.sentence
