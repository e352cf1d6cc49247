"""The stages around the equation: dropped tokens, masks and shared projections."""

import math

import pytest
import torch

from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.surroundings import CausalMask, SharedProjections, TokenDropout


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
    assert plain.features == ()
    assert (plain.forget, plain.heads, plain.delta) == (None, None, None)
