"""Panels of an audit's soundness: leaks are shown apart, and any sizes can be drawn."""

import math

import pytest

from attnlab.charts import soundness, svg
from attnlab.charts.theme import FILE, PAGE


@pytest.mark.parametrize("growth", [{"random": [1.0, math.inf], "aligned": [0.0, 2.0]}, {"random": [0.0, 0.0]}])
def test_sizes_without_a_place_on_the_axis_are_omitted(growth: dict[str, list[float]]) -> None:
    panel = soundness.growth_curves(growth, [32, 64], FILE)
    picture = svg(soundness.draw("A title", ["a subtitle"], [panel], FILE))
    assert ">A title<" in picture
    assert ">√n<" in picture


def test_constant_sizes_look_constant() -> None:
    panel = soundness.growth_curves({"random": [1.0, 1.01]}, [32, 64], FILE)
    low, high = panel["encoding"]["y"]["scale"]["domain"]
    assert high / low > 100


def test_a_leak_is_distinguished_from_allowed_dependence() -> None:
    leaking, sound = ([[1.0, 0.5], [0.1, 0.2]], [[1.0, 0.0], [0.1, 0.2]])
    panel = soundness.leak_map(leaking, FILE)
    assert [value["whose"] for value in panel["data"]["values"]] == [
        "allowed", "later token: a leak", "allowed", "allowed",
    ]  # fmt: skip
    assert "orange" in panel["title"]["subtitle"]
    panel = soundness.leak_map(sound, FILE)
    assert len(panel["data"]["values"]) == 3
    assert panel["title"]["subtitle"] == "no output depends on a later token"


def test_a_chart_for_a_page_takes_the_pages_colours() -> None:
    panel = soundness.leak_map([[1.0, 0.5], [0.1, 0.2]], PAGE)
    assert "var(--orange)" in svg(soundness.draw("", [], [panel], PAGE))
