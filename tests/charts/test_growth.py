"""The chart of growth shows every line in both panels, told apart by more than colour."""

from pathlib import Path

import pytest

from attnlab.charts import growth, save, svg, theme
from attnlab.charts.growth import GrowthPoint
from attnlab.charts.theme import PAGE

LENGTHS = (256, 512, 1024)
POINTS = [
    GrowthPoint(name, kind, length, seconds * length, memory * length)
    for name, kind, seconds, memory in [
        ("SDPA", "kernel", 1e-5, 4000),
        ("dot | relu · blockwise", "kernel", 2e-5, 5000),
        ("dot | relu · blockwise", "eager", 9e-5, 90000),
    ]
    for length in LENGTHS
]


def test_names_lengths_and_units_are_shown(tmp_path: Path) -> None:
    picture = save(growth.draw(POINTS, "A title", "a subtitle"), tmp_path / "g.svg").read_text(encoding="utf-8")
    for text in ("A title", "a subtitle", "SDPA", "dot | relu · blockwise", "eager"):
        assert text in picture
    for text in ("length, tokens", "time, ms", "peak extra memory, MB", *map(str, LENGTHS)):
        assert picture.count(f">{text}<") >= 1


def test_each_name_has_its_own_colour_and_shape() -> None:
    point = growth.draw(POINTS, "")["hconcat"][0]["layer"][-1]["encoding"]
    colours, shapes = point["color"]["scale"], point["shape"]["scale"]
    assert colours["domain"] == shapes["domain"] == ["SDPA", "dot | relu · blockwise"]
    assert len(set(colours["range"])) == len(set(shapes["range"])) == 2


def test_dashes_are_explained_only_where_kinds_differ() -> None:
    def legend(points: list[GrowthPoint]) -> object:
        return growth.draw(points, "")["hconcat"][0]["layer"][-2]["encoding"]["strokeDash"]["legend"]

    assert legend(POINTS)
    assert legend(POINTS[:3]) is None


@pytest.mark.parametrize(
    "points",
    [
        [],
        [GrowthPoint("one", "kernel", 64, 1e-3, 1000)],
        [GrowthPoint("no memory", "kernel", length, 1e-3, 0) for length in LENGTHS],
        [GrowthPoint(f"line {number}", "kernel", 64, 1e-3, 1000) for number in range(20)],
    ],
    ids=["nothing", "one point", "no memory", "more lines than colours"],
)
def test_anything_can_be_drawn(points: list[GrowthPoint], tmp_path: Path) -> None:
    assert save(growth.draw(points, "title"), tmp_path / "g.svg").stat().st_size > 0


def test_every_cost_lies_on_the_axis() -> None:
    for panel in growth.draw(POINTS, "")["hconcat"]:
        axis = panel["encoding"]["y"]
        low, high = axis["scale"]["domain"]
        costs = [value[axis["field"]] for value in growth.draw(POINTS, "")["data"]["values"]]
        assert low <= min(costs) <= max(costs) <= high
        assert len(axis["axis"]["values"]) >= 2


def test_one_panel_may_be_drawn_alone() -> None:
    (panel,) = growth.draw(POINTS, "", fields=["megabytes"])["hconcat"]
    assert panel["encoding"]["y"]["field"] == "megabytes"


def test_a_chart_for_a_page_takes_the_pages_colours() -> None:
    assert "var(--ink)" in svg(growth.draw(POINTS, "A title", theme=PAGE))
    assert "var(" not in svg(growth.draw(POINTS, "A title"))


def test_no_two_of_many_lines_look_alike() -> None:
    many = [GrowthPoint(f"line {number}", "kernel", 64, 1e-3, 1000) for number in range(42)]
    point = growth.draw(many, "")["hconcat"][0]["layer"][-1]["encoding"]
    looks = zip(point["color"]["scale"]["range"], point["shape"]["scale"]["range"], strict=True)
    assert len(set(looks)) == 42


def test_guides_show_n_and_its_square() -> None:
    layers = growth.draw(POINTS, "")["hconcat"][0]["layer"]
    assert [layer["mark"]["text"] for layer in layers if layer["mark"]["type"] == "text"] == ["n", "n²"]
    (start, end), *_ = [layer["data"]["values"] for layer in layers if "data" in layer]
    assert end["milliseconds"] / start["milliseconds"] == pytest.approx(end["length"] / start["length"])


def test_long_labels_end_where_the_plots_end() -> None:
    def legend(name: str) -> dict[str, int]:
        spec = growth.draw([GrowthPoint(name, "kernel", 64, 1e-3, 1000)], "")
        shown: dict[str, int] = spec["hconcat"][0]["layer"][-1]["encoding"]["color"]["legend"]
        return shown

    assert legend("short")["columns"] == 2
    assert legend("long " * 40)["columns"] == 1
    assert legend("long " * 40)["labelLimit"] < 2 * growth.WIDTH + theme.SPACING
