"""One answer over tasks: the mean of difference/smallest of each seed, and what it is without each task."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.statistics import Comparison, compare
from attnlab.statistics.overall import compare_overall, decide_overall, leave_one_out

RNG = np.random.default_rng(5)
BASE = RNG.normal(size=8)


def task(difference: float, smallest: float = 1.0, **settings: object) -> Comparison:
    """Return a comparison of eight seeds."""
    return compare(BASE, BASE + difference + 0.1 * RNG.normal(size=8), smallest=smallest, **settings)  # type: ignore[arg-type]


def test_differences_count_in_units_of_smallest_with_better_above_0() -> None:
    tasks = {"f1": task(4.0, smallest=2.0), "loss": task(-0.3, smallest=0.1, higher_is_better=False)}
    found = compare_overall(tasks)
    assert found.difference == pytest.approx((tasks["f1"].difference / 2 - tasks["loss"].difference / 0.1) / 2)
    assert decide_overall(found, [1, 1])[0] == "BETTER OVERALL"


def test_perplexities_count_on_the_log_scale() -> None:
    logs = BASE - np.log(1.05) + 0.001 * RNG.normal(size=8)
    log = compare(BASE, logs, smallest=5.0, scale="log", higher_is_better=False)
    assert compare_overall({"text": log}).difference == pytest.approx(1.0, abs=0.05)


def test_opposed_verdicts_are_mixed() -> None:
    found = compare_overall({"a": task(5.0), "b": task(5.0), "c": task(5.0), "d": task(-2.0)})
    assert decide_overall(found, [1, 1, 1, -1])[0] == "MIXED (3 better, 1 worse)"
    assert decide_overall(found, [0, 0, 0, -1])[0] == "MIXED (0 better, 1 worse)"
    assert decide_overall(found, [1, 1, 1, 0])[0] == "BETTER OVERALL"


def test_small_means_are_no_meaningful_difference_or_below_the_threshold() -> None:
    same = compare_overall({"a": compare(BASE, BASE + 0.1 * np.tile([1.0, -1.0], 4)), "b": task(0.0)})
    assert decide_overall(same, [])[0] == "NO MEANINGFUL DIFFERENCE"
    assert decide_overall(compare_overall({"a": task(0.4), "b": task(0.5)}), [])[0].startswith("BETTER OVERALL, BELOW")


def test_a_seed_without_a_score_in_one_task_is_a_failed_run() -> None:
    failed = compare(list(BASE), [*(BASE[:-1] + 3 + 0.1 * RNG.normal(size=7)), None])
    found = compare_overall({"a": task(3.0), "b": failed})
    assert found.data.num_seeds == 7
    assert found.data.failures.failed == (0, 1)
    assert decide_overall(found, [])[0].startswith("BETTER OVERALL AMONG RUNS THAT FINISHED")


def test_the_spread_of_examples_is_added() -> None:
    rows = RNG.normal(size=(8, 30))
    by_example = compare(rows, rows + 3 * RNG.normal(size=30) + 0.1 * RNG.normal(size=(8, 30)))
    found = compare_overall({"a": by_example, "b": task(0.0)})
    assert found.estimate.se == pytest.approx(by_example.estimate.se / 2, rel=0.1)


def test_the_task_that_decides_is_seen_by_leaving_it_out() -> None:
    tasks = {"large": task(9.0), "none": task(0.0), "other": task(0.0)}
    left = {one.task: one.comparison.verdict for one in leave_one_out(tasks, 0.05)}
    assert left["large"] == "NO MEANINGFUL DIFFERENCE"
    assert left["none"].startswith("BETTER")
    assert leave_one_out({"large": task(9.0)}, 0.05) == []
