"""The stages around the equation: gates, penalties, dropped tokens, masks and shared projections."""

import math

import pytest
import torch

from attnlab.mechanisms import Dims, Mechanism
from attnlab.mechanisms.surroundings import CausalMask, Gate, Penalize, SharedProjections, TokenDropout

from .parameters import draw

DIMS = Dims(num_heads=3, head_dim=4, value_dim=5)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("per", "width"), [("element", 5), ("head", 1)])
def test_a_gate_is_as_wide_as_what_it_gates(per: str, width: int) -> None:
    (gate,) = Mechanism.parse(f"gate(per={per})").output
    (declared,) = gate.parameters(DIMS).values()
    assert declared.shape == (3, width, 4)
    assert declared.has_weight_decay
    assert (declared.low, declared.high) == (-0.5, 0.5)
    assert gate(normal(2, 3, 6, 5), normal(2, 3, 6, 4), draw(gate, DIMS)).shape == (2, 3, 6, 5)


def test_a_gate_is_the_sigmoid_of_the_query() -> None:
    output, q = normal(2, 3, 6, 5), normal(2, 3, 6, 4, seed=1)
    weight = normal(3, 5, 4, seed=2)
    got = Gate()(output, q, {"weight": weight})
    inner = sum(weight[1, 4, i] * q[0, 1, 2, i] for i in range(4))
    assert got[0, 1, 2, 4].item() == pytest.approx(float(output[0, 1, 2, 4]) / (1 + math.exp(-inner)))


def test_a_gate_of_zero_lets_half_through() -> None:
    output, q = normal(2, 3, 6, 5), normal(2, 3, 6, 4, seed=1)
    for gate in (Gate(), Gate(per="head")):
        p = {name: torch.zeros_like(value) for name, value in draw(gate, DIMS).items()}
        torch.testing.assert_close(gate(output, q, p), output / 2, rtol=0, atol=0)
        assert gate.penalty(output) is None


def test_a_gate_a_head_is_one_number_a_query() -> None:
    gate, ones = Gate(per="head"), torch.ones(2, 3, 6, 5, dtype=torch.float64)
    got = gate(ones, normal(2, 3, 6, 4), draw(gate, DIMS))
    assert torch.equal(got, got[..., :1].expand_as(got))
    assert got[..., 0].unique().numel() == 2 * 3 * 6


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


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_tokens_vanish_as_often_as_said(p: float) -> None:
    kept = TokenDropout(p).draw_kept_keys(100, 1000, torch.Generator().manual_seed(0))
    assert kept.shape == (100, 1, 1, 1000)  # one draw a key, for every head and query
    assert kept.dtype == torch.bool
    deviation = math.sqrt(p * (1 - p) / kept.numel())
    assert abs(kept.double().mean().item() - (1 - p)) < 4 * deviation
    # Sequences and keys are drawn on their own: no row and no column is emptier than chance makes it.
    assert (kept.double().mean((0, 1, 2)) - (1 - p)).abs().max() < 5 * math.sqrt(p * (1 - p) / 100)
    assert (kept.double().mean((1, 2, 3)) - (1 - p)).abs().max() < 5 * math.sqrt(p * (1 - p) / 1000)


def test_tokens_vanish_by_the_generator_alone() -> None:
    stage = TokenDropout(0.3)
    first, again, other = (stage.draw_kept_keys(2, 50, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_no_token_vanishes_with_probability_zero() -> None:
    assert TokenDropout(0).draw_kept_keys(10, 1000, torch.Generator().manual_seed(0)).all()


@pytest.mark.parametrize("where", ["before", "after", "zero"])
def test_masks(where: str) -> None:
    assert Mechanism.parse(f"mask({where})").causal == CausalMask(where)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["separate", "qk", "qkv"])
def test_shares(what: str) -> None:
    assert Mechanism.parse(f"share({what})").share == SharedProjections(what)  # type: ignore[arg-type]


def test_what_is_left_out_is_the_plain_case() -> None:
    plain = Mechanism.parse("dot | softmax")
    assert plain.causal.where == "before"
    assert plain.mask == ()
    assert plain.share.what == "separate"
    assert plain.drop is None
    assert plain.values == ()
    assert plain.output == ()
