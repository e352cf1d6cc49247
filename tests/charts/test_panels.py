"""Panels show what they are given: bars with their numbers, curves with their marks, points with their names."""

from pathlib import Path
from typing import Any

import pytest

from attnlab.charts import panels, save, svg
from attnlab.charts.panels import Bars, CurvePanel, Panel, Points
from attnlab.charts.theme import FILE, PAGE

BARS = Bars("Weights", ["k0", "k1"], {"naive": [0.356, 0.0], "constructed": [0.5, -0.25]})
CURVES = CurvePanel("Growth", {"k0": [(0.1, 0.2), (1000.0, 1.0)], "others": [(0.1, 0.8), (1000.0, 0.0)]}, "strength")
POINTS = Points("Keys", {"k0": (0.0, 0.0), "k1": (1.0, 2.0)}, ["k0"], [[(0.0, 0.0), (1.0, 2.0)]])


def test_titles_numbers_and_names_are_shown(tmp_path: Path) -> None:
    spec = panels.draw([BARS, CURVES, POINTS], "A title", "A sentence.")
    picture = save(spec, tmp_path / "panels.svg").read_text(encoding="utf-8")
    for text in (
        "A title",
        "A sentence.",
        "Weights",
        ".356",
        "−.250",
        "0",
        "naive",
        "Growth",
        "strength",
        "Keys",
        "k1",
    ):
        assert f">{text}<" in picture


def test_one_group_of_bars_needs_no_legend_and_may_stand_out() -> None:
    alone = Bars("", ["a", "b"], {"only": [1.0, 2.0]}, strong=["b"])
    picture = svg(panels.draw([alone], ""))
    assert ">only<" not in picture
    assert FILE.orange in picture
    assert FILE.orange not in svg(panels.draw([Bars("", ["a"], {"only": [1.0]})], ""))


def test_an_axis_reaches_its_largest_bar() -> None:
    (panel,) = panels.draw([Bars("", ["a"], {"only": [-3.0]}, reach=(0.0, 2.0))], "")["hconcat"]
    low, high = panel["encoding"]["y"]["scale"]["domain"]
    assert low < -3
    assert high > 2


def test_a_faint_line_is_grey_and_others_have_colours() -> None:
    (panel,) = panels.draw([CurvePanel("", CURVES.lines, "x", faint=["others"])], "")["hconcat"]
    scale = panel["layer"][-1]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {"k0": FILE.blue, "others": panels.FAINT}


def test_a_logarithmic_axis_names_powers_of_ten() -> None:
    def axis(is_logarithmic: bool, start: float = 0.1) -> dict[str, Any]:
        lines = {"k0": [(start, 0.2), (1000.0, 1.0)]}
        (panel,) = panels.draw([CurvePanel("", lines, "x", is_logarithmic=is_logarithmic)], "")["hconcat"]
        found: dict[str, Any] = panel["encoding"]["x"]
        return found

    assert axis(True)["axis"]["values"] == [0.1, 1, 10, 100, 1000]
    assert len(axis(True, 1e-30)["axis"]["values"]) <= panels.MAX_POWERS + 1
    assert "values" not in axis(False)["axis"]


@pytest.mark.parametrize(("place", "side"), [(1.0, "left"), (900.0, "right")])
def test_the_words_of_a_mark_stand_where_there_is_room(place: float, side: str) -> None:
    (panel,) = panels.draw([CurvePanel("", CURVES.lines, "x", marks={"here": place})], "")["hconcat"]
    assert panel["layer"][1]["mark"]["align"] == side
    assert ">here<" in svg(panels.draw([CurvePanel("", CURVES.lines, "x", marks={"here": place})], ""))


def test_a_sentence_is_broken_where_the_panels_end() -> None:
    lines = panels.draw([BARS], "", "word " * 60)["title"]["subtitle"]
    assert len(lines) > 3


@pytest.mark.parametrize("panel", [BARS, CURVES, POINTS, CurvePanel("", {}, "x"), Points("", {})])
def test_anything_can_be_drawn_for_a_page_too(panel: Panel) -> None:
    assert "var(--ink)" in svg(panels.draw([panel], "A title", theme=PAGE))
    assert "var(" not in svg(panels.draw([panel], "A title"))
