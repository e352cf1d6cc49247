"""What a search tried: a line for each arm, and a ring at each value that was chosen."""

from __future__ import annotations

import math

from attnlab.charts import svg, tried_values
from attnlab.charts.tried_values import TriedValue, TriedValues

POINTS = [
    TriedValue(arm, rate, value + shift, chosen)
    for arm, shift in (("dot", 0.0), ("cosine", 3.0))
    for rate, value, chosen in ((1e-4, 30.0, 0), (1e-3, 20.0, 4), (1e-2, 25.0, 1))
]


def test_names_axes_and_chosen_values_are_shown() -> None:
    spec = tried_values.draw(TriedValues(POINTS, "perplexity", "optimizer.lr", is_logarithmic=True), "Tried", "text")
    picture = svg(spec)
    for text in ("dot", "cosine", "perplexity", "optimizer.lr", "Tried", "text"):
        assert f">{text}<" in picture
    rings = spec["layer"][2]["data"]["values"]
    assert [(ring["tried"], ring["num_chosen"]) for ring in rings] == [(1e-3, 4), (1e-2, 1)] * 2
    assert rings[0]["area"] > rings[1]["area"]
    assert spec["encoding"]["x"]["scale"]["type"] == "log"


def test_values_without_a_place_are_omitted() -> None:
    points = [*POINTS, TriedValue("dot", 0.0, 1.0), TriedValue("cosine", 1e-1, math.inf)]
    spec = tried_values.draw(TriedValues(points, "accuracy", "clip"), "Tried")
    assert len(spec["layer"][1]["data"]["values"]) == len(POINTS) + 1
    assert "type" not in spec["encoding"]["x"]["scale"]  # 0 has no logarithm
