"""A forest plot shows every arm with its words, and leaves out what has no place on an axis."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attnlab.charts import forest, svg
from attnlab.charts.forest import Effect, choose_side

TITLES = ("Difference to dot", "recall, tiny", "difference in accuracy")


def drawn(*effects: Effect, smallest: float = 0.02) -> dict[str, Any]:
    return dict(forest.draw(effects, smallest, TITLES))


def test_arms_words_and_titles_are_shown() -> None:
    picture = svg(drawn(Effect("bypass", 0.03, (0.01, 0.05), [0.02, 0.04], "+0.03 [+0.01, +0.05]")))
    for text in (*TITLES, "bypass", "+0.03 [+0.01, +0.05]"):
        assert f">{text}<" in picture


def test_the_axis_holds_intervals_pairs_and_the_smallest_effect() -> None:
    spec = drawn(Effect("a", 0.03, (0.01, 0.05), [0.09]), Effect("b", -0.1, (-0.2, 0.0)), smallest=0.3)
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < -0.3
    assert high > 0.3


def test_one_pair_has_no_interval_and_what_is_no_number_is_left_out() -> None:
    spec = drawn(Effect("one", 0.01, (-math.inf, math.inf), [0.01, math.nan]), Effect("none", math.nan, (0.0, 1.0)))
    pairs, spans, means = (layer["data"]["values"] for layer in spec["layer"][2:5])
    assert [row["arm"] for row in means] == ["one"]
    assert len(pairs) == 1
    assert spans == []
    assert svg(spec).startswith("<svg")


@pytest.mark.parametrize(("share", "where"), [(0.1, "left"), (0.5, "center"), (0.9, "right")])
def test_words_stay_on_the_axis(share: float, where: str) -> None:
    assert choose_side(share) == where
