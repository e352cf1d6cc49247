"""Initial values follow the seed and the layer, and a declaration that would break the seed is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import ParameterError, ShapeError
from attnlab.kernels import initial_values
from attnlab.mechanisms import Dims, Mechanism, Parameter, Params, Weights, masked_softmax, stage
from tests.install.models import build

pytestmark = pytest.mark.usefixtures("own_stages")


def register(declare: Callable[[Dims], Parameter]) -> str:
    """Register softmax of scores times 1 + z, z as declared, and return a line of it."""

    @stage("tempered")
    @dataclass(frozen=True)
    class Tempered(Weights):
        """softmax((1 + z_h) s)."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"z": declare(dims)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return masked_softmax(scores * (1 + p["z"][:, None, None]), visible)

    return "dot | tempered"


def test_attend_and_weights_take_the_initial_values_of_their_layer() -> None:
    line = register(lambda dims: Parameter((dims.num_heads,), start=lambda head: head + 1.0 * dims.layer))
    q, k, v = torch.randn(3, 1, 4, 10, 8)
    for layer in (0, 2):
        given: Any = {"tempered_z": torch.arange(4) + 1.0 * layer}
        own = attnlab.attend(q, k, v, line, causal=True, layer=layer)
        assert torch.equal(own, attnlab.attend(q, k, v, line, causal=True, parameters=given))
        assert torch.equal(own, attnlab.Attention(line, 4, 8, layer=layer)(q, k, v, causal=True))
        weights = attnlab.weights(q, k, line, causal=True, layer=layer)
        assert torch.equal(weights, attnlab.weights(q, k, line, causal=True, parameters=given))


def test_normal_values_are_drawn_from_the_seed_and_the_name_of_the_layer() -> None:
    line = register(lambda dims: Parameter((dims.num_heads,), std=0.1))

    def install(seed: int) -> list[Tensor]:
        model: Any = attnlab.install(build("gpt2"), line, seed=seed)
        return [values.detach() for name, values in model.named_parameters() if name.endswith("tempered_z")]

    (first, second), again, other = install(7)[:2], install(7), install(8)
    assert torch.equal(first, again[0])
    assert not torch.equal(first, second)
    assert not torch.equal(first, other[0])
    drawn = initial_values(Mechanism.parse(line), 4000, 8, 8)["tempered_z"]
    assert float(drawn.mean()) == pytest.approx(0, abs=0.01)
    assert float(drawn.std()) == pytest.approx(0.1, rel=0.05)


def draw_after_seeding(head: Tensor) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(head.shape)


@pytest.mark.parametrize(
    "declare",
    [
        lambda dims: Parameter((dims.num_heads,), start=lambda head: 0.1 * torch.randn(head.shape)),
        lambda dims: Parameter((dims.num_heads,), start=lambda head: random.random()),
        lambda dims: Parameter((dims.num_heads,), start=torch.randn(dims.num_heads)),
        lambda dims: Parameter((dims.num_heads,), start=draw_after_seeding),
    ],
    ids=["torch", "python", "a tensor", "seeded inside"],
)
def test_a_random_start_is_refused(declare: Callable[[Dims], Parameter]) -> None:
    line = register(declare)
    q = torch.randn(1, 4, 10, 8)
    words = r"start of parameter 'tempered_z' draws random numbers.*Parameter\(shape, std=0.1\)"
    for compute in (
        lambda: attnlab.attend(q, q, q, line), lambda: attnlab.Attention(line, 4, 8),
        lambda: attnlab.install(build("gpt2"), line), lambda: attnlab.audit(line),
    ):  # fmt: skip
        with torch.random.fork_rng(devices=[]), pytest.raises(ParameterError, match=words):
            compute()


def test_a_stage_refuses_sizes_in_its_parameters() -> None:
    @stage("paired")
    @dataclass(frozen=True)
    class Paired(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            if dims.num_heads % 3:
                raise ShapeError(f"'{self}' takes three heads at once, and there are {dims.num_heads}")
            return {}

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores, -1)

    q = torch.randn(1, 4, 10, 8)
    for compute in (
        lambda: attnlab.attend(q, q, q, "dot | paired"), lambda: attnlab.Attention("dot | paired", 4, 8),
        lambda: attnlab.install(build("gpt2"), "dot | paired"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="'paired' takes three heads at once"):
            compute()
    assert attnlab.attend(q[:, :3], q[:, :3], q[:, :3], "dot | paired").shape == (1, 3, 10, 8)
