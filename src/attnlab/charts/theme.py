"""The colours, sizes and frame that all charts share. A file is printed on white; a chart inside a page takes the
page's colours, light or dark."""

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.visible import make_visible

from .chart import SCHEMA, Chart

Layer = dict[str, Any]
"""A part of a Vega-Lite spec."""

# Okabe and Ito's colours, distinguishable with any kind of colour vision; without yellow, which is too pale on white.
GREEN, PURPLE, SKY, AMBER = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
SPACING = 36
"""Pixels between charts side by side."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Dash patterns of lines that share a colour."""


@dataclass(frozen=True)
class Theme:
    """The colours of a chart: its background, its text, its grid, the ground of its areas, and two accents."""

    background: str
    ink: str
    grid: str
    ground: str
    blue: str
    orange: str
    padding: int

    @property
    def colours(self) -> tuple[str, ...]:
        """The colours of lines, the most different first."""
        return self.blue, self.orange, GREEN, PURPLE, self.ink, SKY, AMBER


FILE = Theme("white", "#333333", "#E4E4E4", "#F2F2F2", "#0072B2", "#D55E00", padding=12)
PAGE = Theme("transparent", "var(--ink)", "var(--grid)", "var(--ground)", "var(--blue)", "var(--orange)", padding=0)
"""For a chart in a page whose CSS sets these variables."""
CAPTION, LINE, GAP = 11, 15, 8
"""The size of the letters of a caption, the height of a line, and the space above it."""
CHARACTER, MIN_CHARACTERS = 5.6, 30
"""The mean width of a letter of a caption, and the fewest of a line."""
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*">')


def print_on_white(picture: str, caption: str = "") -> str:
    """Return an SVG that was drawn for a page in the colours and with the padding of a file, over its caption.

    On a page the caption is beside the picture; in a file it says what the marks and lines are.
    """
    for name in ("ink", "grid", "ground", "blue", "orange"):
        picture = picture.replace(f'"{getattr(PAGE, name)}"', f'"{getattr(FILE, name)}"')
    size = _SIZE.search(picture)
    if size is None:
        return picture
    width, height = map(float, size.groups())
    lines = textwrap.wrap(make_visible(caption), max(MIN_CHARACTERS, int(width / CHARACTER)))
    below = f"{_write_lines(lines, height)}</svg>" if lines else "</svg>"
    picture = f"{picture.rstrip().removesuffix('</svg>')}{below}"
    return _SIZE.sub(_pad(width, height + len(lines) * LINE + (GAP if lines else 0)), picture, count=1)


def _write_lines(lines: Sequence[str], top: float) -> str:
    rows = "".join(
        f'<tspan x="0" y="{top + GAP + (number + 0.7) * LINE:g}">{html.escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text font-family="{FONT}" font-size="{CAPTION}" fill="{FILE.ink}">{rows}</text>'


def _pad(width: float, height: float) -> str:
    sides = [f"{side + 2 * FILE.padding:g}" for side in (width, height)]
    outer, corner = f'width="{sides[0]}" height="{sides[1]}"', -FILE.padding
    background = f'<rect x="{corner}" y="{corner}" {outer} fill="{FILE.background}"/>'
    return f'{outer} viewBox="{corner} {corner} {sides[0]} {sides[1]}">{background}'


def config(theme: Theme) -> Layer:
    """Return the part of a Vega-Lite spec that every chart shares."""
    ink = theme.ink
    axis_colours = {"gridColor": theme.grid, "domainColor": ink, "tickColor": ink, "labelColor": ink, "titleColor": ink}
    axis_text = {"labelFontSize": 12, "labelFlush": False, "titleFontSize": 13, "titleFontWeight": "normal"}
    legend_text = {"labelFontSize": 12, "labelColor": ink, "labelLimit": 0, "symbolSize": 90, "symbolStrokeWidth": 2}
    return {
        "background": theme.background,
        "padding": theme.padding,
        "font": FONT,
        "view": {"stroke": None},
        "concat": {"spacing": SPACING},
        "title": {"anchor": "start", "fontSize": 16, "color": ink, "subtitleColor": ink, "offset": 16},
        "axis": {**axis_colours, **axis_text, "titlePadding": 10},
        "legend": {
            "orient": "bottom", "direction": "vertical", "columns": 2, "columnPadding": 28, "offset": 16, **legend_text,
        },
    }  # fmt: skip


def frame(title: str, subtitle: str | Sequence[str], theme: Theme, **parts: Any) -> Chart:
    """Return a whole chart: its parts, a title and the shared configuration."""
    heading = {"text": title, "subtitle": subtitle if isinstance(subtitle, str) else list(subtitle)}
    return Chart({"$schema": SCHEMA, "title": heading, **parts, "config": config(theme)})


def quantitative(field: str, **options: Any) -> Layer:
    """Return the encoding of a field of numbers."""
    return {"field": field, "type": "quantitative", **options}


def nominal(field: str, **options: Any) -> Layer:
    """Return the encoding of a field of names."""
    return {"field": field, "type": "nominal", **options}


def layer(rows: Sequence[Any], kind: str, encoding: Layer | None = None, **mark: Any) -> Layer:
    """Return a layer that draws rows of data with marks of one kind."""
    return {"data": {"values": rows}, "mark": {"type": kind, **mark}, "encoding": encoding or {}}
