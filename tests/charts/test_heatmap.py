"""Weights become pictures in which sign, size and what a query may see can be told apart."""

from pathlib import Path
from typing import Any

import pytest

from attnlab.charts import heatmap, save, svg
from attnlab.charts.heatmap import Picture
from attnlab.charts.theme import FILE, PAGE

PICTURE = Picture("dot | softmax", "What is to be seen.", [[1.0, 0.0], [-0.25, 0.5]])


def layers(picture: Picture, causal: bool = True) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    ground, cells = heatmap.draw([picture], "AB", causal=causal)["concat"][0]["layer"]
    return ground["data"]["values"], cells["data"]["values"]


def test_titles_tokens_and_axes_are_shown(tmp_path: Path) -> None:
    spec = heatmap.draw([PICTURE, PICTURE], ["first", 'it\'s "2"'], "Both")
    picture = save(spec, tmp_path / "weights.svg").read_text(encoding="utf-8")
    for text in ("Both", "dot | softmax", "What is to be seen.", "first", "query", "key"):
        assert f">{text}<" in picture
    assert "it's" in picture


def test_a_pair_is_a_cell_and_none_is_drawn_for_no_weight() -> None:
    _, cells = layers(PICTURE)
    assert [(cell["query"], cell["key"], cell["sign"], cell["size"]) for cell in cells] == [
        (0, 0, "positive", 1.0),
        (1, 0, "negative", 0.25),
        (1, 1, "positive", 0.5),
    ]


def test_the_ground_is_what_a_query_may_see() -> None:
    assert [row["right"] for row in layers(PICTURE)[0]] == [1, 2]
    assert [row["right"] for row in layers(PICTURE, causal=False)[0]] == [2, 2]


def test_each_picture_has_its_own_scale() -> None:
    faint = Picture("faint", "", [[0.01, 0.0], [0.0, 0.02]])
    spec = heatmap.draw([PICTURE, faint], "AB")
    largest = [panel["layer"][1]["encoding"]["fillOpacity"]["scale"]["domain"][1] for panel in spec["concat"]]
    assert largest == [1.0, 0.02]
    assert spec["resolve"]["scale"]["fillOpacity"] == "independent"


@pytest.mark.parametrize("weights", [[], [[0.0]]], ids=["no tokens", "no weight"])
def test_anything_can_be_drawn(weights: list[list[float]]) -> None:
    assert svg(heatmap.draw([Picture("", "", weights)], "A" * len(weights))).startswith("<svg")


def test_a_chart_for_a_page_takes_the_pages_colours() -> None:
    inside, alone = (svg(heatmap.draw([PICTURE], "AB", theme=theme)) for theme in (PAGE, FILE))
    for colour in ("--ink", "--ground", "--blue", "--orange"):
        assert f"var({colour})" in inside
    assert "var(" not in alone


def test_a_token_may_be_any_word_of_vegas_own_language() -> None:
    words = ["if", "data", "datum", "scale", "'", '"', "\\", "</text>", "\x1f"]
    picture = svg(heatmap.draw([Picture("", "", [[0.0] * len(words)] * len(words))], words))
    for word in ("if", "data", "datum", "scale", "&lt;/text&gt;"):
        assert picture.count(f">{word}<") == 2
