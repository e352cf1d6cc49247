"""Floor, ceiling and runs that are still training: what stands in place of BETTER, or beside it."""

from typing import Any

import numpy as np
import pytest

from attnlab.statistics import compare

RNG = np.random.default_rng(1)
AT_FLOOR = RNG.normal(0.212, 0.01, 8)
LEARNED = RNG.normal(0.80, 0.01, 8)


def test_neither_arm_beyond_the_floor() -> None:
    found = compare(AT_FLOOR, AT_FLOOR - 0.02 + RNG.normal(0, 0.002, 8), smallest=0.01, floor=0.2121)
    assert found.verdict == "NEITHER LEARNED THE TASK"
    assert "a trivial strategy scores 0.2121" in found.decision.reason
    assert compare(AT_FLOOR, AT_FLOOR - 0.02 + RNG.normal(0, 0.002, 8), smallest=0.01).verdict.startswith("WORSE")


def test_a_perplexity_must_fall_below_its_floor() -> None:
    logs = np.log(RNG.normal(100, 1, 8))
    terms: dict[str, Any] = {"scale": "log", "higher_is_better": False}
    assert compare(logs, logs + 0.01 * RNG.normal(size=8), floor=90.0, **terms).verdict == "NEITHER LEARNED THE TASK"
    assert compare(logs, logs + 0.01 * RNG.normal(size=8), floor=200.0, **terms).verdict != "NEITHER LEARNED THE TASK"


@pytest.mark.parametrize("best", [1.0, 100.0])
@pytest.mark.parametrize("paired", [True, False])
def test_both_perfect(best: float, paired: bool) -> None:
    found = compare([best] * 6, [best] * 6, paired)
    assert found.verdict == "BOTH AT CEILING"
    assert "a harder task" in found.decision.reason


def test_the_same_scores_elsewhere_are_degenerate() -> None:
    assert compare([0.5] * 6, [0.5] * 6).verdict == "DEGENERATE"
    assert compare([1.0] * 6, [1.0] * 6, higher_is_better=False).verdict == "DEGENERATE"
    assert compare([0.5] * 6, [0.5] * 6, ceiling=0.5, smallest=0.1).verdict == "BOTH AT CEILING"


def test_a_given_ceiling_reaches_as_far_as_the_threshold() -> None:
    near = 0.999 + RNG.normal(0, 1e-4, 8)
    other = 0.999 + RNG.normal(0, 1e-4, 8)
    assert compare(near, other, smallest=0.01, ceiling=1.0).verdict == "BOTH AT CEILING"
    assert compare(near, near - 0.005 + RNG.normal(0, 1e-4, 8), smallest=0.01, ceiling=1.0).verdict.startswith("WORSE")
    assert compare(near - 0.02, other - 0.02, smallest=0.01, ceiling=1.0).verdict == "NO MEANINGFUL DIFFERENCE"
