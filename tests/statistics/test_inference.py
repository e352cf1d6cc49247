"""The interval and p-value that decide: t, the exact test that may overrule it, and the e-process."""

import numpy as np
import pytest

from attnlab.errors import StatisticsError
from attnlab.statistics import Question, Summary, compare, compare_summaries, look_limits, sign_flip
from attnlab.statistics.inference import infer

RNG = np.random.default_rng(11)
BASELINE = RNG.normal(70, 0.5, 10)
VARIANT = BASELINE + RNG.normal(2.0, 0.5, 10)
ZERO = np.zeros(8)


def test_declared_looks_ask_for_more() -> None:
    once, first = compare(BASELINE, VARIANT), compare(BASELINE, VARIANT, looks=(5, 10, 15, 20))
    assert first.level == look_limits()[10]
    assert first.interval[0] < once.interval[0]
    assert first.p == once.p


def test_open_ended_runs_have_an_interval_for_all_times() -> None:
    found = compare(BASELINE, VARIANT, looks="open")
    assert found.method == "e-process, normal mixture"
    assert found.verdict.startswith("BETTER")
    assert found.interval[0] < compare(BASELINE, VARIANT).interval[0]


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("paired", [True, False])
def test_p_is_at_most_the_level_just_if_the_interval_leaves_out_0(n: int, paired: bool) -> None:
    for _ in range(60):
        baseline, variant = np.exp(RNG.normal(size=n)), np.exp(RNG.normal(0.8, 1.0, n))
        found = compare(baseline, variant, paired)
        for level in (0.2, 0.05, 0.01, 0.001):
            inference = infer(found.estimate, found.question, found.data, level)
            low, high = inference.interval
            assert (not low <= 0 <= high) == (inference.p <= level)
            # A family relies on it: p is the same at any level that is used.
            assert level > 0.05 or inference.p == found.p


def test_the_exact_test_overrules_t_where_they_disagree() -> None:
    differences = np.array([1.1, 0.3, 0.5, -0.2, -0.4, 1.5, 1.5, 2.2])
    found = compare(ZERO, differences, smallest=0.1)
    assert found.estimate.p < 0.05 < sign_flip(differences).p
    assert found.p == sign_flip(differences).p
    assert found.verdict.startswith("INCONCLUSIVE")
    assert found.interval[0] <= 0 < found.interval[1]
    assert any("the exact sign-flip test overrules t" in note for note in found.notes)


def test_five_pairs_are_left_to_t() -> None:
    differences = np.array([1.0, 1.1, 0.9, 1.2, 0.8])
    assert sign_flip(differences).p == 0.0625
    assert compare(np.zeros(5), differences).verdict.startswith("BETTER")


def test_open_ended_looks_need_every_seed_of_both_arms() -> None:
    with pytest.raises(StatisticsError, match="needs the score of each seed"):
        compare_summaries(Summary(70.0, 1.0, 5), Summary(71.0, 1.0, 5), Question(looks="open"))
    with pytest.raises(StatisticsError, match="as many seeds in both arms"):
        compare(BASELINE, VARIANT[:8], paired=False, looks="open")
