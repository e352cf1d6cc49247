"""The colours and sizes every chart shares. A theme says what is ink and what is paper: a file is printed on white,
a chart inside a page takes the page's own colours, light or dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Okabe and Ito's colours, told apart with any kind of colour vision; yellow is left out, too pale on white.
GREEN, PURPLE, SKY, AMBER = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
SPACING = 36
"""Pixels between charts side by side."""


@dataclass(frozen=True)
class Theme:
    """What a chart is drawn on, what it is written with, its grid, the ground of its areas, and two colours."""

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
"""For a chart inlined in a page whose CSS sets these variables."""


def config(theme: Theme) -> dict[str, Any]:
    """Return the part of a Vega-Lite spec that every chart shares."""
    ink = theme.ink
    return {
        "background": theme.background,
        "padding": theme.padding,
        "font": FONT,
        "view": {"stroke": None},
        "concat": {"spacing": SPACING},
        "title": {"anchor": "start", "fontSize": 16, "color": ink, "subtitleColor": ink, "offset": 16},
        "axis": {
            "gridColor": theme.grid,
            "domainColor": ink,
            "tickColor": ink,
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "labelFlush": False,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "titlePadding": 10,
        },
        "legend": {
            "orient": "bottom",
            "direction": "vertical",
            "columns": 2,
            "labelFontSize": 12,
            "labelColor": ink,
            "labelLimit": 0,
            "symbolSize": 90,
            "symbolStrokeWidth": 2,
            "columnPadding": 28,
            "offset": 16,
        },
    }
