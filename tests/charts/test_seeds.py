"""Every seed is a dot, an arm without any keeps its row, and the mean is taken as the axis measures."""

from __future__ import annotations

import math

import pytest

from attnlab.charts import seeds, svg
from attnlab.charts.seeds import Dots, SeedDot, compute_means

DOTS = [SeedDot("dot", 1, 1.0), SeedDot("dot", 2, 100.0), SeedDot("bypass", 1, 10.0), SeedDot("bypass", 2, math.inf)]


def test_arms_without_a_value_keep_their_row() -> None:
    spec = seeds.draw(Dots(["dot", "bypass", "lost (2 failed)"], DOTS, "accuracy"), "Every seed")
    assert spec["encoding"]["y"]["scale"]["domain"] == ["dot", "bypass", "lost (2 failed)"]
    assert len(spec["layer"][-1]["data"]["values"]) == 3
    assert ">lost (2 failed)<" in svg(spec)


@pytest.mark.parametrize(("is_logarithmic", "mean"), [(False, 50.5), (True, 10.0)])
def test_a_mean_is_as_the_axis_measures(is_logarithmic: bool, mean: float) -> None:
    found = compute_means(DOTS[:2], {"dot": "dot", "other": "other"}, is_logarithmic)
    assert [row["arm"] for row in found] == ["dot"]
    assert found[0]["value"] == pytest.approx(mean)


def test_what_has_no_place_on_a_logarithmic_axis_is_left_out() -> None:
    spec = seeds.draw(Dots(["dot"], [SeedDot("dot", 1, 0.0), SeedDot("dot", 2, 2.0)], "perplexity", True), "Every seed")
    assert [row["value"] for row in spec["layer"][-1]["data"]["values"]] == [2.0]
    assert svg(seeds.draw(Dots(["dot"], [], "perplexity", True), "Nothing")).startswith("<svg")
