"""Masks show the pairs that their definitions show, at positions, and several combine."""

from __future__ import annotations

import pytest
import torch

from attnlab import weights
from attnlab.errors import MechanismError
from attnlab.mechanisms import Mechanism, Positions
from attnlab.mechanisms.masks import Chunk, TopK, Window


def locate(length: int, start: int = 0) -> Positions:
    places = torch.arange(start, start + length)[None, None]
    return Positions(places, places)


def test_a_window_shows_the_pairs_nearer_than_its_width() -> None:
    shown = Window(3)(positions=locate(6))[0, 0]
    assert shown.tolist() == [[abs(i - j) < 3 for j in range(6)] for i in range(6)]


def test_chunks_follow_positions_not_indices() -> None:
    shown = Chunk(4)(positions=locate(6, start=3))[0, 0]
    assert shown.tolist() == [[(i + 3) // 4 == (j + 3) // 4 for j in range(6)] for i in range(6)]


def test_top_k_keeps_the_first_of_equal_scores_among_the_visible() -> None:
    scores = torch.tensor([[[[5.0, 2.0, 2.0, 2.0, 1.0]]]])
    visible = torch.tensor([[[[False, True, True, True, True]]]])
    assert TopK(2)(scores=scores, visible=visible).tolist() == [[[[False, True, True, False, False]]]]


def test_several_masks_need_the_consent_of_all() -> None:
    q, k = torch.randn(2, 1, 2, 12, 4, dtype=torch.float64)
    both = weights(q, k, "dot | softmax | window(4) | chunk(6) | mask(after)", causal=True)
    assert bool(((both > 0) <= (weights(q, k, "dot | softmax | window(4)") > 0)).all())
    assert bool(((both > 0) <= (weights(q, k, "dot | softmax | chunk(6)", causal=True) > 0)).all())


def test_n_counts_what_a_window_shows_and_all_that_top_k_chooses_from() -> None:
    q, k = torch.ones(2, 1, 1, 8, 4, dtype=torch.float64)
    window = weights(q, k, "dot | identity(divide=n) | window(3)", causal=True)[0, 0]
    assert torch.allclose(window.sum(-1), torch.full((8,), 2.0, dtype=torch.float64))
    top = weights(q, k, "dot | identity(divide=n) | top_k(2)", causal=True)[0, 0]
    assert torch.allclose(top.sum(-1), torch.tensor([2 * min(2, n) / n for n in range(1, 9)], dtype=torch.float64))


def test_the_reach_of_a_mechanism_is_that_of_its_narrowest_mask() -> None:
    assert Mechanism.parse("dot | softmax | window(9) | chunk(4) | top_k(2)").find_reach(2) == 4
    assert Mechanism.parse("dot | softmax | top_k(2)").find_reach(2) is None


@pytest.mark.parametrize("line", ["dot | window", "dot | window(0)", "dot | chunk(1.5)", "dot | top_k(0)"])
def test_a_mask_needs_its_size(line: str) -> None:
    with pytest.raises(MechanismError):
        Mechanism.parse(line)
