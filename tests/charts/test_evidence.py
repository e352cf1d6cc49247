"""Panels of an audit draw what they are given: 0, what is not a number, and rules across."""

import math
from typing import Any

import pytest

from attnlab.charts import soundness, svg
from attnlab.charts.evidence import Bar, Margin, bars, margins, show_number
from attnlab.charts.theme import FILE

TITLE = ("A title", "a subtitle")


def drawn(panel: dict[str, Any]) -> str:
    return svg(soundness.draw("all", ["of it"], [panel], FILE))


def test_bars_carry_their_figures_and_a_rule_its_name() -> None:
    picture = drawn(
        bars(TITLE, [Bar("one", 1.25), Bar("none", 0.0, is_strong=True), Bar("less", -0.5)], FILE, (2.0, "ln V"))
    )
    for text in ("1.25", "none", "−0.5", "ln V", "A title", "a subtitle"):
        assert f">{text}<" in picture


def test_a_bar_that_is_no_number_is_said() -> None:
    assert ">not a number<" in drawn(bars(TITLE, [Bar("lost", math.nan), Bar("fine", 1.0)], FILE))


def test_margins_place_zero_at_the_left_and_the_endless_at_the_right() -> None:
    rows = [Margin("exact", 0.0, 0.0), Margin("small", 1e-15, 1e-12), Margin("lost", math.inf, 1e-12)]
    panel = margins(TITLE, rows, FILE)
    places = [value["figure"] for value in panel["data"]["values"]]
    assert places == sorted(places)
    assert [value["bad"] for value in panel["data"]["values"]] == [False, False, True]
    assert ">not a number of 1e−12<" in drawn(panel)


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (-1e-7, "−1e−07"), (1234.5, "1.23e+03"), (0.25, "0.25")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert show_number(value) == text
