"""One head large and all small: no label is lost or covered, and more tokens than marks become an image."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from attnlab.charts import svg
from attnlab.charts.head_grid import MAX_CHARACTERS, MAX_MARKS, TOKEN_SIDE, HeadGrid, draw, shorten


def make(num_layers: int, num_heads: int, num_tokens: int, num_learned: int = 0) -> HeadGrid:
    weights = np.random.default_rng(0).random((num_layers, num_heads, num_tokens, num_tokens + num_learned))
    names = [f"token{number}" for number in range(num_tokens)]
    causal = weights * np.tri(num_tokens, num_tokens + num_learned, k=num_learned)
    return HeadGrid(causal, names, [*(f"p{i}" for i in range(num_learned)), *names], num_layers - 1, 0)


def places(picture: str, name: str) -> list[float]:
    """Return where the labels of the left axis are, from the top down."""
    found = re.findall(rf'transform="translate\(-?[\d.]+,([\d.]+)\)"[^>]*>{name}\d+<', picture)
    return sorted({float(place) for place in found})


@pytest.mark.parametrize("sizes", [(2, 2, 4), (12, 12, 40), (1, 1, 1)])
def test_every_token_is_named_and_no_two_names_overlap(sizes: tuple[int, int, int]) -> None:
    spec: Any = draw(make(*sizes), "A model")
    picture = svg(spec)
    head, grid = spec["concat"]
    for number in range(sizes[2]):
        assert picture.count(f">token{number}<") == 2
    downs = places(picture, "token")
    assert all(after - before >= TOKEN_SIDE - 0.01 for before, after in pairwise(downs))
    assert head["height"] == head["width"]
    assert picture.count("<image") == 1
    assert grid["title"]["text"] == "Every head"


def test_many_tokens_are_an_image_and_some_of_them_are_named() -> None:
    picture = svg(draw(make(1, 2, MAX_MARKS + 36), "A model"))
    assert picture.count("<image") == 2
    assert ">token0<" in picture
    assert ">token1<" not in picture
    assert ">token98<" in picture


def test_keys_may_be_more_than_queries_and_negative_weights_are_explained() -> None:
    grid = make(1, 1, 3, num_learned=2)
    assert grid.is_causal
    assert ">p1<" in svg(draw(grid, "A model"))
    assert "negative" not in str(dict(draw(grid, "A model")))
    both = HeadGrid(grid.weights - 0.5, grid.queries, grid.keys, 0, 0)
    assert not both.is_causal
    assert "blue: negative weights" in str(dict(draw(both, "A model")))


def test_heads_without_weights_can_be_drawn() -> None:
    assert "NaN" not in svg(draw(HeadGrid(np.zeros((1, 1, 2, 2)), ["a", "b"], ["a", "b"], 0, 0), "A model"))


def test_layers_have_their_own_numbers() -> None:
    picture = svg(draw(HeadGrid(np.ones((2, 1, 2, 2)), ["a", "b"], ["a", "b"], 5, 0, (3, 5)), "A model"))
    assert ">Layer 5, head 0<" in picture
    assert ">3<" in picture


def test_even_weights_that_sum_to_one_look_pale() -> None:
    names = ["a", "b", "c", "d"]
    even = np.full((1, 1, 4, 4), 0.25)
    assert HeadGrid(even, names, names, 0, 0).most == 1.0
    assert HeadGrid(even / 2, names, names, 0, 0).most == 0.125


def test_a_long_token_keeps_both_ends() -> None:
    assert shorten("a" * MAX_CHARACTERS) == "a" * MAX_CHARACTERS
    assert shorten("antidisestablishmentarianism") == "antidise…rianism"
