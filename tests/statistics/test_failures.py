"""Failed runs: planted cases by their words, alone and in families, and the tests against scipy."""

import numpy as np
import pytest
from scipy import stats

from attnlab.statistics import Comparison, compare, conclude_family
from attnlab.statistics.failures import compare_with_worst
from attnlab.statistics.scores import read_arms

RNG = np.random.default_rng(5)
BASELINE = RNG.normal(70, 0.5, 10)
BETTER = BASELINE + RNG.normal(2.0, 0.5, 10)


def failing(num: int) -> list[float | None]:
    return [*BETTER[: 10 - num], *[None] * num]


def in_family(comparison: Comparison, size: int) -> Comparison:
    other = compare(BASELINE, BASELINE + RNG.normal(0, 1, 10))
    found = conclude_family({"planted": comparison} | dict.fromkeys(map(str, range(size - 1)), other))
    return found["planted"]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_five_of_ten_failed_has_the_same_words_in_any_family(size: int, paired: bool) -> None:
    found = in_family(compare(BASELINE, failing(5), paired), size)
    assert found.verdict == "NOT COMPARABLE (0 of 10 runs of the baseline and 5 of 10 of the variant failed)"


@pytest.mark.parametrize("looks", [(5, 10, 15, 20), "open"])
def test_looks_do_not_switch_the_check_off(looks: tuple[int, ...] | str) -> None:
    assert compare(BASELINE, failing(5), looks=looks).verdict.startswith("NOT COMPARABLE")  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("num", [1, 2, 3, 4])
def test_fewer_failures_qualify_the_words(num: int, size: int) -> None:
    found = in_family(compare(BASELINE, failing(num)), size)
    assert found.verdict.removeprefix("BETTER BY AT LEAST 1").removeprefix("BETTER") == " AMONG RUNS THAT FINISHED"
    assert any(f"{num} of 10 of the variant failed; with failed runs" in note for note in found.notes)


def test_no_difference_is_qualified_too() -> None:
    same = [*(BASELINE[:9] + RNG.normal(0, 0.01, 9)), None]
    assert compare(BASELINE, same).verdict == "NO MEANINGFUL DIFFERENCE AMONG RUNS THAT FINISHED"


def test_as_many_failures_qualify_nothing() -> None:
    found = compare([*BASELINE[:9], None], [None, *BETTER[1:]])
    assert found.verdict == "BETTER BY AT LEAST 1"


def test_failures_as_the_worst_result_may_say_worse() -> None:
    # The runs that finished do not show it, and four failures alone are not enough for Fisher's test.
    little = BASELINE - np.array([0.1, 0.2, 0.1, 0.3, 0.2, 1.9, 0, 0, 0, 0])
    found = compare(BASELINE, [*little[:6], *[None] * 4], smallest=0.5)
    assert compare(BASELINE[:6], little[:6], smallest=0.5).verdict.startswith("INCONCLUSIVE")
    assert found.verdict == "WORSE"
    assert found.p == found.data.failures.worst_p == pytest.approx(2 / 1024)
    lower = compare(-BASELINE, [*-little[:6], *[None] * 4], smallest=0.5, higher_is_better=False)
    assert lower.verdict == "WORSE"


def test_any_imbalance_qualifies_the_words_and_the_reason_says_what_failures_change() -> None:
    baseline = RNG.normal(70, 0.5, 20)
    found = compare(baseline, [*(baseline[:19] + RNG.normal(2, 0.2, 19)), None])
    assert found.verdict == "BETTER BY AT LEAST 1 AMONG RUNS THAT FINISHED"
    assert "with failed runs counted as the worst result the difference has the same sign" in found.decision.reason


@pytest.mark.parametrize("paired", [True, False])
def test_ranks_are_scipys(paired: bool) -> None:
    variant = [*BETTER[:7], *[None] * 3]
    arms = read_arms(BASELINE, variant, paired)
    found, sign = compare_with_worst(*arms, paired, higher_is_better=True)
    filled = np.array([*BETTER[:7], -1e6, -1e6, -1e6])
    if paired:
        # Ties at the worst rank: scipy counts them exactly only by its own permutation test.
        ranks = stats.rankdata([*np.abs(BETTER[:7] - BASELINE[:7]), 1e6, 1e6, 1e6]) * np.sign(filled - BASELINE)
        known = stats.permutation_test(
            (ranks,), np.mean, permutation_type="samples", n_resamples=10_000, alternative="two-sided"
        )
        assert found.p == pytest.approx(known.pvalue)
    else:
        dealt = stats.mannwhitneyu(BASELINE, filled, method=stats.PermutationMethod(n_resamples=50_000))
        assert found.p == pytest.approx(dealt.pvalue, abs=0.01)
    assert sign == (1 if paired else int(np.sign(stats.rankdata([*BASELINE, *filled])[10:].mean() - 10.5)))
