"""Differences against size: a square and an interval at each size, and the fitted line, on an axis of base 2."""

from __future__ import annotations

import math

from attnlab.charts import svg, trend
from attnlab.charts.trend import ArmTrend, TrendPoint

POINTS = [TrendPoint(2.0**at, 0.3 - 0.1 * at, (0.2 - 0.1 * at, 0.4 - 0.1 * at)) for at in range(3)]
TITLES = ("By size", "recall", "parameters", "difference")


def test_points_lines_names_and_axes_are_shown() -> None:
    spec = trend.draw([ArmTrend("cosine", POINTS, (0.3, 0.1)), ArmTrend("sigmoid", POINTS, (0.3, 0.1))], 0.05, TITLES)
    picture = svg(spec)
    for text in ("cosine", "sigmoid", "By size", "parameters", "difference"):
        assert f">{text}<" in picture
    assert len(spec["layer"][2]["data"]["values"]) == 4
    assert len(spec["layer"][4]["data"]["values"]) == 6
    assert spec["layer"][4]["encoding"]["x"]["scale"]["base"] == 2
    places = [row["place"] for row in spec["layer"][4]["data"]["values"]]
    assert places[0] < POINTS[0].place < places[3]  # arms stand apart


def test_an_interval_without_ends_is_left_out() -> None:
    points = [TrendPoint(1.0, 0.1, (-math.inf, math.inf)), *POINTS[1:]]
    spec = trend.draw([ArmTrend("cosine", points, (0.3, 0.1))], 0.05, TITLES)
    assert len(spec["layer"][3]["data"]["values"]) == 2
    assert svg(spec)
