"""Themes: every chart has the shared frame, and its colours can be told apart."""

import re

import pytest

from attnlab.charts import png, svg
from attnlab.charts.theme import FILE, PAGE, Theme, config, frame, layer, nominal, print_on_white, quantitative


@pytest.mark.parametrize("theme", [FILE, PAGE])
def test_a_frame_has_a_title_its_parts_and_the_shared_configuration(theme: Theme) -> None:
    spec = frame("A title", ["two", "lines"], theme, width=3)
    assert spec["title"] == {"text": "A title", "subtitle": ["two", "lines"]}
    assert spec["width"] == 3
    assert spec["config"] == config(theme)
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def test_the_configuration_is_a_new_one_each_time() -> None:
    config(FILE)["title"]["fontSize"] = 99
    assert config(FILE)["title"]["fontSize"] != 99


@pytest.mark.parametrize("theme", [FILE, PAGE])
def test_the_colours_of_lines_differ(theme: Theme) -> None:
    assert len(set(theme.colours)) == len(theme.colours) == 7


def test_a_page_sets_every_colour_but_those_of_further_lines() -> None:
    colours = (PAGE.ink, PAGE.grid, PAGE.ground, PAGE.blue, PAGE.orange)
    assert all(colour.startswith("var(--") for colour in colours)
    assert PAGE.background == "transparent"


def test_layers_and_encodings_are_vega_lites() -> None:
    assert quantitative("a", format="d") == {"field": "a", "type": "quantitative", "format": "d"}
    assert nominal("a") == {"field": "a", "type": "nominal"}
    drawn = layer([{"a": 1}], "rule", {"x": nominal("a")}, strokeWidth=2)
    assert drawn["data"] == {"values": [{"a": 1}]}
    assert drawn["mark"] == {"type": "rule", "strokeWidth": 2}
    assert drawn["encoding"] == {"x": nominal("a")}


def test_the_caption_of_a_file_is_below_its_picture() -> None:
    page = svg(frame("A title", "below", PAGE, **layer([{"x": 1}], "bar", {"x": quantitative("x")})))
    plain, printed = (
        print_on_white(page, caption) for caption in ("", "Dots are <seeds> & the dashed line is 3. " * 9)
    )
    heights = [float(size) for picture in (plain, printed) for size in re.findall(r'<svg[^>]* height="(\d+)"', picture)]
    texts = re.findall(r"<tspan[^>]*>([^<]*)</tspan>", printed)
    assert heights[1] - heights[0] == 8 + 15 * len(texts)
    assert texts[0].startswith("Dots are &lt;seeds&gt; &amp; ")
    assert printed.endswith("</text></svg>")
    assert png(printed).startswith(b"\x89PNG")


def test_a_picture_of_a_page_becomes_one_of_a_file() -> None:
    def draw(theme: Theme) -> str:
        bars = layer([{"x": 1}], "bar", {"x": quantitative("x")}, color=theme.blue)
        return svg(frame("A title", "below", theme, **bars))

    size = re.compile(r'<svg[^>]* width="(\d+)" height="(\d+)"')
    page, file = draw(PAGE), draw(FILE)
    printed = print_on_white(page)
    assert "var(--" in page
    assert "var(--" not in printed
    assert size.findall(printed) == size.findall(file)
    for colour in (FILE.ink, FILE.grid, FILE.blue, FILE.background):
        assert printed.count(f'"{colour}"') == file.count(f'"{colour}"') > 0
