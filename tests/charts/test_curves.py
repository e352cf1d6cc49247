"""Learning curves show each arm with its name, its seeds and their mean."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.charts import curves, save, svg
from attnlab.charts.curves import MAX_DOTS, Curves, Point, compute_averages
from attnlab.charts.theme import PAGE

ARMS = ("baseline", "additive")


def points(
    num_seeds: int = 3, steps: range = range(10, 60, 10), value: Callable[..., float] | None = None
) -> list[Point]:
    value = value or (lambda arm, seed, step: 5 - step / 50 + seed / 10 + len(arm) / 10)
    return [
        Point(arm, seed, step, value(arm, seed, step)) for arm in ARMS for seed in range(num_seeds) for step in steps
    ]


def layers(drawn: Curves, mark: str) -> list[dict[str, Any]]:
    return [layer for layer in curves.draw(drawn, "")["layer"] if layer["mark"]["type"] == mark]


def test_names_axes_and_titles_are_shown(tmp_path: Path) -> None:
    spec = curves.draw(Curves(points(), "dev loss", "update"), "A title", ["two", "lines"])
    picture = save(spec, tmp_path / "c.svg").read_text(encoding="utf-8")
    for text in (*ARMS, "dev loss", "update", "A title", "two", "lines", "50"):
        assert f">{text}<" in picture
    assert save(spec, tmp_path / "c.png").stat().st_size > 0


@pytest.mark.parametrize("is_logarithmic", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [(2, 10.5, ["2", "4", "6", "8", "10"]), (50, 73.5, ["50", "60", "70"]), (1e6, 9e6, ["2M"])],
)
def test_round_numbers_are_written_as_such(low: float, high: float, labels: list[str], is_logarithmic: bool) -> None:
    if is_logarithmic and low == 2:
        labels = ["2", "5", "10"]
    drawn = Curves([Point("a", 0, 1, low), Point("a", 0, 2, high)], is_logarithmic=is_logarithmic)
    picture = svg(curves.draw(drawn, ""))
    for label in labels:
        assert f">{label}<" in picture


def test_seeds_are_thin_and_their_mean_is_bold_in_a_band() -> None:
    drawn = Curves(points())
    seeds, means = layers(drawn, "line")
    (band,) = layers(drawn, "area")
    assert seeds["mark"]["strokeWidth"] < means["mark"]["strokeWidth"]
    assert (len(seeds["data"]["values"]), len(means["data"]["values"])) == (30, 10)
    assert len(band["data"]["values"]) == 10
    first = means["data"]["values"][0]
    assert (first["value"], first["high"] - first["value"]) == pytest.approx((5.7, 0.1))


def test_one_seed_is_its_own_line_without_a_band() -> None:
    drawn = Curves(points(num_seeds=1))
    seeds, means = layers(drawn, "line")
    assert not seeds["data"]["values"]
    assert not layers(drawn, "area")[0]["data"]["values"]
    assert [row["value"] for row in means["data"]["values"]] == [point.value for point in drawn.points]


def test_a_mean_ends_where_a_seed_does() -> None:
    def diverging(arm: str, seed: int, step: int) -> float:
        return math.nan if (arm, seed) == ("baseline", 1) and step > 20 else 1.0

    drawn = Curves(points(value=diverging))
    assert [one.step for one in compute_averages(drawn, "baseline")] == [10, 20]
    assert len(compute_averages(drawn, "additive")) == 5
    never = Curves(points(value=lambda arm, seed, step: math.inf if seed == 2 else 1.0))
    assert compute_averages(never, "baseline") == []
    assert ">baseline<" in svg(curves.draw(never, ""))


def test_a_mean_on_a_logarithmic_axis_is_of_logarithms() -> None:
    drawn = Curves([Point("a", 0, 1, 10.0), Point("a", 1, 1, 1000.0)], is_logarithmic=True)
    (mean,) = compute_averages(drawn, "a")
    assert mean.value == pytest.approx(100)
    assert mean.low > 0
    assert curves.draw(drawn, "")["encoding"]["y"]["scale"]["type"] == "log"


def test_marks_are_diamonds_tied_to_their_curves() -> None:
    drawn = Curves(points(num_seeds=1), marks=[Point("baseline", 0, 50, 9.0), Point("alone", 0, 50, 2.0)])
    assert [row["value"] for row in layers(drawn, "point")[-1]["data"]["values"]] == [9.0, 2.0]
    (tie,) = layers(drawn, "rule")[0]["data"]["values"]
    assert (tie["arm"], tie["end"]) == ("baseline", pytest.approx(4.8))


def test_values_are_dots_where_they_are_few() -> None:
    few, many = (Curves(points(steps=range(number))) for number in (MAX_DOTS, MAX_DOTS + 1))
    assert len(layers(few, "point")) == len(layers(many, "point")) + 1


def test_no_two_of_many_arms_look_alike_and_all_names_have_room() -> None:
    spec = curves.draw(Curves([Point(f"arm {number}", 0, 1, 1.0) for number in range(25)]), "")
    lines = [layer["encoding"]["strokeDash"] for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    looks = zip(*(map(str, told["scale"]["range"]) for told in (spec["encoding"]["color"], lines[-1])), strict=True)
    assert len(set(looks)) == 25
    assert spec["height"] >= 25 * 16


def test_a_long_name_keeps_both_ends() -> None:
    name = "cosine(scale=learned) | softmax | bypass(alpha=0.25)"
    assert len(curves.shorten(name)) <= curves.MAX_CHARACTERS
    assert curves.shorten(name).startswith("cosine")
    assert curves.shorten(name).endswith("0.25)")
    assert curves.shorten("baseline") == "baseline"


@pytest.mark.parametrize("is_logarithmic", [False, True])
@pytest.mark.parametrize(
    "some",
    [[], [Point("one", 0, 1, 2.0)], [Point("none", 0, 1, math.nan)], [Point("a", 0, 5, 0.0), Point("a", 1, 5, 1e300)]],
    ids=["nothing", "one point", "no number", "zero and beyond"],
)
def test_anything_can_be_drawn_for_a_page_too(some: list[Point], is_logarithmic: bool) -> None:
    drawn = Curves(some, is_logarithmic=is_logarithmic)
    assert "var(--ink)" in svg(curves.draw(drawn, "A title", theme=PAGE))
    assert "var(" not in svg(curves.draw(drawn, "A title"))
