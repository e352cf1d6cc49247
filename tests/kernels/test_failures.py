"""An error inside a user's stage names the stage, and keeps the original as its cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import MechanismError, ShapeError
from attnlab.kernels.attend import attend_with_weights
from attnlab.mechanisms import Dims, Output, Parameter, Params, TokenDropout, Weights, stage
from tests.install.models import build, tokens

pytestmark = pytest.mark.usefixtures("own_stages")
Q = torch.randn(1, 2, 600, 8)


def declare(base: type[Any], call: Any) -> None:
    stage("mine")(dataclass(frozen=True)(type("Mine", (base,), {"__call__": call, "__module__": __name__})))


def read_missing(self: Any, scores: Tensor, n: Tensor, p: Any) -> Tensor:
    return scores.mul(p["ww"])


def multiply_wrongly(self: Any, scores: Tensor, n: Tensor, p: Any) -> Tensor:
    return scores * torch.ones(3)


def raise_zero(self: Any, output: Tensor, q: Tensor, p: Any) -> Tensor:
    return output / (1 // 0)


@pytest.mark.parametrize(
    ("base", "call", "line", "kind", "sentence"),
    [
        (Weights, read_missing, "dot | mine", KeyError, "'mine' raised KeyError: 'ww' \\(in read_missing, line"),
        (Weights, multiply_wrongly, "dot | mine", RuntimeError, "'mine' raised RuntimeError: The size of tensor"),
        (Output, raise_zero, "dot | softmax | mine", ZeroDivisionError, "'mine' raised ZeroDivisionError"),
    ],
)
def test_the_stage_is_named(base: Any, call: Any, line: str, kind: type[Exception], sentence: str) -> None:
    declare(base, call)
    model = attnlab.install(build("gpt2"), line)
    for fail in (
        lambda: attnlab.attend(Q, Q, Q, line),
        lambda: attend_with_weights(Q, Q, Q, line),
        lambda: model(tokens()),
    ):
        with pytest.raises(MechanismError, match=sentence) as caught:
            fail()
        assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("names", [("zeta", "beta"), ()])
def test_a_misspelt_parameter_names_those_declared(names: tuple[str, ...]) -> None:
    @stage("mine")
    @dataclass(frozen=True)
    class Mine(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {name: Parameter((dims.num_heads,), 1.0, 1.0) for name in names}

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores * p["zetta"][:, None, None], -1)

    declared = r"declares zeta, beta, did you mean 'zeta'\?" if names else "declares no parameters"
    with pytest.raises(MechanismError, match=rf"raised KeyError: 'zetta' .*`parameters` of the stage {declared}"):
        attnlab.attend(Q, Q, Q, "dot | mine")


def test_errors_of_attnlab_stay_as_they_are() -> None:
    declare(Weights, lambda self, scores, n, p: scores[..., :1])
    with pytest.raises(ShapeError, match="'mine' must return"):
        attnlab.attend(Q, Q, Q, "dot | mine")


def return_nothing(self: Any, scores: Tensor, n: Tensor, p: Any) -> Any:
    return None


def add_in_place(self: Any, scores: Tensor, n: Tensor, p: Any) -> Tensor:
    return torch.relu(scores.add_(1))


@pytest.mark.parametrize("causal", [False, True])
def test_a_stage_without_a_return_is_named(causal: bool) -> None:
    declare(Weights, return_nothing)
    with pytest.raises(ShapeError, match=r"'mine' must return .*not None: its call has no return"):
        attnlab.attend(Q, Q, Q, "dot | mine", causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_a_stage_that_changes_its_input_is_named(causal: bool) -> None:
    declare(Weights, add_in_place)
    with pytest.raises(MechanismError, match=r"'mine' changed a tensor that it was given, in place"):
        attnlab.attend(Q, Q, Q, "dot | mine", causal=causal)


@pytest.mark.parametrize("kept", [None, 1.0, torch.ones(1, 1, 1, 600), torch.ones(1, 1, 1, 5, dtype=torch.bool)])
def test_token_dropout_that_returns_no_booleans_of_keys_is_named(kept: Any) -> None:
    def draw_kept_keys(self: Any, batch: int, num_keys: int, generator: torch.Generator) -> Any:
        return kept

    methods = {"draw_kept_keys": draw_kept_keys, "__module__": __name__}
    stage("mine")(dataclass(frozen=True)(type("Mine", (TokenDropout,), methods)))
    with pytest.raises(ShapeError, match=r"draw_kept_keys of 'mine.*' must return booleans \[b 1 1 k\]"):
        attnlab.attend(Q, Q, Q, "dot | softmax | mine(0.5)", training=True)
