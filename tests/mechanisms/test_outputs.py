"""Output stages: gates, norms, what a token says itself, and penalties."""

import math

import pytest
import torch
from torch import Tensor

from attnlab.mechanisms import Dims, Mechanism
from attnlab.mechanisms.outputs import Exclusive, Gate, HeadNorm, Penalize

from .parameters import draw

DIMS = Dims(num_heads=3, head_dim=4, value_dim=5, model_dim=7)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("per", "width"), [("channel", 5), ("head", 1)])
@pytest.mark.parametrize(("source", "size"), [("x", 7), ("q", 4)])
def test_a_gate_is_as_wide_as_what_it_gates(per: str, width: int, source: str, size: int) -> None:
    (gate,) = Mechanism.parse(f"gate(from={source}, per={per})").output
    (declared,) = gate.parameters(DIMS).values()
    assert declared.shape == (3, width, size)
    assert declared.has_weight_decay
    assert declared.high == -declared.low == pytest.approx(1 / math.sqrt(size))
    assert dict(gate.inputs) == ({"x": True} if source == "x" else {})
    given = {"x": normal(2, 6, 7)} if source == "x" else {}
    assert gate(normal(2, 3, 6, 5), normal(2, 3, 6, 4), draw(gate, DIMS), **given).shape == (2, 3, 6, 5)


def test_a_gate_is_the_sigmoid_of_the_layers_input() -> None:
    output, x, weight = normal(2, 3, 6, 5), normal(2, 6, 7, seed=1), normal(3, 5, 7, seed=2)
    gated = Gate(per="channel")(output, normal(2, 3, 6, 4), {"weight": weight}, x=x)
    inner = sum(weight[1, 4, i] * x[0, 2, i] for i in range(7))
    assert gated[0, 1, 2, 4].item() == pytest.approx(float(output[0, 1, 2, 4]) / (1 + math.exp(-inner)))


def test_a_gate_is_the_sigmoid_of_the_query() -> None:
    output, q, weight = normal(2, 3, 6, 5), normal(2, 3, 6, 4, seed=1), normal(3, 5, 4, seed=2)
    gated = Gate(from_="q", per="channel")(output, q, {"weight": weight})
    inner = sum(weight[1, 4, i] * q[0, 1, 2, i] for i in range(4))
    assert gated[0, 1, 2, 4].item() == pytest.approx(float(output[0, 1, 2, 4]) / (1 + math.exp(-inner)))


def test_a_gate_of_zero_lets_half_through() -> None:
    output, q = normal(2, 3, 6, 5), normal(2, 3, 6, 4, seed=1)
    for gate in (Gate(from_="q", per="channel"), Gate(from_="q")):
        p = {name: torch.zeros_like(value) for name, value in draw(gate, DIMS).items()}
        torch.testing.assert_close(gate(output, q, p), output / 2, rtol=0, atol=0)
        assert gate.penalty(output) is None


def test_a_gate_per_head_is_one_number_per_query() -> None:
    gate, ones = Gate(from_="q"), torch.ones(2, 3, 6, 5, dtype=torch.float64)
    gated = gate(ones, normal(2, 3, 6, 4), draw(gate, DIMS))
    assert torch.equal(gated, gated[..., :1].expand_as(gated))
    assert gated[..., 0].unique().numel() == 2 * 3 * 6


def test_a_head_norm_leaves_a_mean_square_of_one() -> None:
    output = normal(2, 3, 6, 5) * 100
    normed = HeadNorm()(output, output, {})
    torch.testing.assert_close(normed.square().mean(-1), torch.ones(2, 3, 6, dtype=torch.float64), rtol=1e-6, atol=0)
    gain = normal(3, 5, seed=3)
    torch.testing.assert_close(HeadNorm("channel")(output, output, {"gain": gain}), normed * gain[:, None])
    assert HeadNorm("channel").parameters(DIMS)["gain"].per == "layer"


def test_exclusive_leaves_nothing_along_the_own_value() -> None:
    output, own = normal(2, 3, 6, 5), normal(2, 3, 6, 5, seed=1)
    left = Exclusive(1.0)(output, output, {}, own=own)
    assert (left * own).sum(-1).abs().max() < 1e-12
    half = Exclusive(0.5)(output, output, {}, own=own)
    torch.testing.assert_close(half, (output + left) / 2)
    torch.testing.assert_close(Exclusive(1.0)(output, output, {}, own=torch.zeros_like(own)), output)


def test_a_penalty_is_the_mean_square_and_leaves_the_output_alone() -> None:
    penalize = Penalize(strength=0.25)
    output = torch.tensor([1.0, -2.0, 3.0, 0.0]).view(1, 1, 2, 2)
    assert penalize(output, output, {}) is output
    penalty = penalize.penalty(output)
    assert penalty is not None
    assert penalty.item() == 0.25 * 14 / 4
    assert penalize.parameters(DIMS) == {}


def test_a_penalty_has_a_gradient() -> None:
    output = normal(1, 1, 2, 2).requires_grad_()
    penalty = Penalize(strength=0.5).penalty(output)
    assert penalty is not None
    penalty.backward()
    assert output.grad is not None
    torch.testing.assert_close(output.grad, 0.5 * 2 * output.detach() / 4)
