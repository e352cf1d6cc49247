"""Every construction can be drawn, with its numbers and its threshold in the picture."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from attnlab.charts import svg
from attnlab.construct import EXAMPLE_KEYS, argmax, average, extract, place_key, select, select_all, strength
from attnlab.construct.pictures import _choose_keys, _find_hull, _project_on_plane
from attnlab.construct.separation import Array
from tests.construct.strategies import keys_and_subset

MIDDLE = [sum(column) / 4 for column in zip(*EXAMPLE_KEYS, strict=True)]
RANDOM = np.random.default_rng(0).normal(size=(40, 12))

RESULTS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "select": (lambda: select(EXAMPLE_KEYS, 0), ("Selecting k0", "strength 8.64", ".990", "k3", "all others")),
    "select, many keys": (lambda: select(RANDOM, 5), ("Selecting k5", "31 more")),
    "select, one key": (lambda: select([[1.0]], 0), ("Selecting k0",)),
    "select, zero key": (lambda: select([[0.0], [1.0]], 0), ("Selecting k0",)),
    "no query": (lambda: select([*EXAMPLE_KEYS, MIDDLE], 4), ("No query selects k4", ".250", "1.000")),
    "twins": (lambda: select([[1.0, 2.0], [1.0, 2.0]], 0), ("No query selects k0",)),
    "a line": (lambda: select([[0.0], [1.0], [2.0]], 1), ("No query selects k1", ".500")),
    "average": (
        lambda: average(EXAMPLE_KEYS, [0, 1], scale=1),
        ("Averaging k0 and k1", ".356", ".140", ".148", ".495"),
    ),
    "average all": (lambda: average(EXAMPLE_KEYS), (".250",)),
    "no average": (lambda: average([[0.0, 0], [1, 0], [3, 0]], [0, 1]), ("No query averages", "3.000", "−2.000")),
    "select all": (lambda: select_all(EXAMPLE_KEYS), ("The identity map", "k3", "query")),
    "select all but one": (lambda: select_all([*EXAMPLE_KEYS, MIDDLE]), ("k4",)),
    "strength": (lambda: strength(10, 64, 0.45), (".110", ".450", "S = 28.7", "strength S")),
    "negative strength": (lambda: strength(10, 64, 0.05), ("S = −",)),
    "two keys": (lambda: strength(2, 64, 0.5), (".500",)),
    "extract": (lambda: extract(np.eye(4)[:, :2]), ("90°: 0", "x3", "v_a")),
    "extract, not orthogonal": (lambda: extract([3.0, 4.0], [1.0, 0.0]), ("53°: 0.6",)),
    "extract, wide": (lambda: extract(np.eye(20)[:, :2]), ("The first 10 coordinates",)),
    "extract, all": (lambda: extract(np.eye(2)), ("x1",)),
    "argmax": (lambda: argmax(EXAMPLE_KEYS, [6, 1, 0]), ("softmax: a slope", "argmax: a step", ".530", "1.000")),
    "argmax, one key": (lambda: argmax([[1.0]], [1.0]), ("Argmax selects k0",)),
    "argmax, twins": (lambda: argmax([[1.0], [1.0]], [1.0]), ("Argmax selects k0",)),
    "place to average": (lambda: place_key(EXAMPLE_KEYS, [3.0, 4.0, 0.0]), ("averaged with k0 and k1", "new")),
    "place to select": (lambda: place_key(EXAMPLE_KEYS, [3.0, 4.0, 0.0], "select"), ("returned alone", "norm 1")),
    "place behind": (lambda: place_key([[-1.0, 0.0], [-1.0, 0.0]], [2.0, 0.0]), ("norm 1",)),
    "place, zero query": (lambda: place_key(EXAMPLE_KEYS, [0.0, 0.0, 0.0]), ("new",)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_can_be_drawn(name: str) -> None:
    make, words = RESULTS[name]
    picture = re.sub(r"<[^>]+>", "|", svg(make().figure()))
    for word in words:
        assert word in picture, word
    assert "NaN" not in picture


@settings(max_examples=40)
@given(keys_and_subset())
def test_a_figure_of_any_keys_holds_numbers_alone(drawn: tuple[Array, list[int]]) -> None:
    keys, subset = drawn
    text = json.dumps(average(keys, subset).figure()).lower()
    assert not re.search(r"\b(nan|infinity)\b", text)


def test_the_keys_asked_for_are_always_shown() -> None:
    weights = select(RANDOM, 5).naive
    shown, left = _choose_keys(weights, [33, 5], 4)
    assert {5, 33} <= set(shown)
    assert len(shown) == 3
    assert sorted(shown + left) == list(range(40))


def test_the_hull_has_its_corners_alone() -> None:
    square = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    assert _find_hull([*square, (1.0, 1.0), (1.0, 0.0)]) == square
    assert _find_hull([(1.0, 1.0), (1.0, 1.0)]) == [(1.0, 1.0)]
    assert set(_find_hull([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)])) == {(0.0, 0.0), (2.0, 2.0)}


def test_a_plane_keeps_what_lies_in_one() -> None:
    places = np.array(_project_on_plane(select(EXAMPLE_KEYS, 0).problem.keys[:3]))
    keys = np.array(EXAMPLE_KEYS)[:3]
    lengths = [
        np.linalg.norm(points[0] - points[1]) / np.linalg.norm(points[0] - points[2]) for points in (places, keys)
    ]
    assert lengths[0] == pytest.approx(lengths[1])
