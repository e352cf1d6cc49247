"""Quality against cost: a dot for every seed, a mean with its name for every arm, and names that do not overlap."""

from __future__ import annotations

import math

from attnlab.charts import cost, svg
from attnlab.charts.cost import CostPoint

POINTS = [
    CostPoint(arm, seed, paid + seed, value + seed / 100)
    for arm, paid, value in (("dot", 10.0, 1.0), ("near", 10.5, 1.0), ("dear", 30.0, 4.0)) for seed in (1, 2)
]  # fmt: skip
TITLES = ("Quality and time", "text, mini", "seconds", "perplexity")


def test_every_seed_and_every_mean_is_drawn() -> None:
    spec = cost.draw(POINTS, TITLES)
    seeds, means = (layer["data"]["values"] for layer in spec["layer"][:2])
    assert len(seeds) == 6
    assert [(row["arm"], row["cost"]) for row in means] == [("dot", 11.5), ("near", 12.0), ("dear", 31.5)]
    picture = svg(spec)
    assert all(f">{arm}<" in picture for arm in ("dot", "near", "dear"))


def test_names_of_close_arms_are_apart() -> None:
    left, right = (layer["data"]["values"] for layer in cost.draw(POINTS, TITLES)["layer"][2:])
    assert [row["name"] for row in right] == ["dear"]
    assert abs(left[0]["share"] - left[1]["share"]) > 0.05


def test_a_value_without_a_place_is_omitted_and_a_mean_is_as_the_axis_measures() -> None:
    points = [CostPoint("dot", 1, 1.0, 1.0), CostPoint("dot", 2, 2.0, 100.0), CostPoint("dot", 3, 2.0, math.nan)]
    means = cost.draw(points, TITLES, is_logarithmic=True)["layer"][1]["data"]["values"]
    assert means == [{"arm": "dot", "cost": 1.5, "value": math.exp(math.log(100) / 2)}]
