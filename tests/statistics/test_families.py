"""Many comparisons: adjusted as statsmodels does, at levels that decide just so."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, Question, adjust, compare, compare_many, conclude_family, look_limits
from attnlab.statistics.families import Role
from attnlab.statistics.question import Looks

METHODS: dict[Role, str] = {"primary": "holm", "exploratory": "fdr_bh"}


def test_holm_by_hand() -> None:
    found = adjust({"a": 0.01, "b": 0.04, "c": 0.03})
    assert [one.adjusted for one in found.values()] == pytest.approx([0.03, 0.06, 0.06])
    assert [one.level for one in found.values()] == pytest.approx([0.05 / 3, 0.025, 0.025])


def test_benjamini_hochberg_by_hand() -> None:
    found = adjust({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5}, "exploratory")
    assert [one.adjusted for one in found.values()] == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert {one.level for one in found.values()} == {0.05 / 4}
    assert {one.method for one in found.values()} == {"Benjamini–Hochberg"}


@pytest.mark.parametrize("role", ["primary", "exploratory"])
@settings(max_examples=40)
@given(ps=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_each_p_is_adjusted_and_decided_as_statsmodels_does(role: Role, ps: list[float]) -> None:
    found = adjust({str(number): p for number, p in enumerate(ps)}, role)
    passed, adjusted, _, _ = multipletests(ps, alpha=0.05, method=METHODS[role])
    assert [one.adjusted for one in found.values()] == pytest.approx(adjusted.tolist())
    assert [one.p <= one.level for one in found.values()] == passed.tolist()


def test_a_comparison_without_a_p_still_counts() -> None:
    found = adjust({"a": 0.02, "b": math.nan})
    assert found["a"].adjusted == pytest.approx(0.04)
    assert math.isnan(found["b"].adjusted)
    assert adjust({}) == {}


def test_arms_are_one_family() -> None:
    rng = np.random.default_rng(0)
    baseline = rng.normal(size=8)
    arms = {name: baseline + rng.normal(shift, 1, 8) for name, shift in (("none", 0.0), ("some", 1.2), ("much", 4.0))}
    family = compare_many(baseline, arms, question=Question(smallest=0.5))
    assert family.comparisons["much"].verdict == "BETTER BY AT LEAST 0.5"
    for name, comparison in family.comparisons.items():
        assert comparison.level == family.adjusted[name].level < 0.05 or name == "none"
        is_found = comparison.verdict.startswith(("BETTER", "WORSE"))
        assert is_found == (family.adjusted[name].adjusted <= 0.05)
    assert "much: BETTER" in str(family)
    assert family.record()["adjusted"]["much"]["method"] == "Holm"


def mixed() -> dict[tuple[str, str], Comparison]:
    rng = np.random.default_rng(2)
    scores = rng.normal(0, 1, (5, 10))
    return {
        ("squad", "much"): compare(scores[0], scores[0] + rng.normal(3, 1, 10)),
        ("squad", "unpaired"): compare(scores[1], scores[2], paired=False),
        ("text", "log"): compare(scores[3] / 10, scores[3] / 10 + rng.normal(-0.5, 0.2, 10), scale="log"),
        ("text", "leaks"): compare(scores[3], scores[4] + 90, obstacle="it leaks"),
        ("probe", "neither"): compare(scores[3], scores[4], floor=5.0),
        ("probe", "few"): compare(scores[3][:4], scores[4][:4] + 90),
    }


def test_a_family_may_be_of_anything() -> None:
    alone = mixed()
    found = conclude_family(alone)
    ps = [one.p if number < 3 else 1.0 for number, one in enumerate(alone.values())]
    passed, adjusted, _, _ = multipletests(ps, alpha=0.05, method="holm")
    assert [one.family.adjusted for one in found.values() if one.family] == pytest.approx(adjusted.tolist())
    assert [one.decision.is_difference for one in found.values()] == passed.tolist()
    assert found["squad", "much"].level == pytest.approx(0.05 / 6)
    assert found["squad", "much"].interval_at(0.05) == pytest.approx(alone["squad", "much"].interval)
    assert found["text", "leaks"].verdict == alone["text", "leaks"].verdict == "NOT COMPARABLE (it leaks)"
    assert found["probe", "neither"].verdict == "NEITHER LEARNED THE TASK"
    assert conclude_family({}) == {}


@pytest.mark.parametrize("looks", [(5, 10, 15, 20), "open", None])
def test_looks_have_their_share_of_a_family(looks: Looks) -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 1, 10)
    alone = {shift: compare(scores, scores + rng.normal(shift, 1, 10), looks=looks) for shift in (0.0, 0.5, 2.5)}
    found = conclude_family(alone)
    for comparison in found.values():
        assert comparison.family is not None
        assert comparison.decision.is_difference == (comparison.family.adjusted <= 0.05)
        low, high = comparison.interval
        assert comparison.decision.is_difference == (not low <= 0 <= high)


def test_a_seed_that_failed_brings_a_look_back_to_the_one_before() -> None:
    scores = np.random.default_rng(5).normal(0, 1, 10)
    found = compare(scores, [*(scores[:9] + 1), None], looks=(5, 10, 15, 20))
    assert found.level == look_limits()[5]


def test_what_is_no_family_is_refused() -> None:
    with pytest.raises(StatisticsError, match="'primary' or 'exploratory'"):
        adjust({"a": 0.1}, "secondary")  # type: ignore[arg-type]
    with pytest.raises(StatisticsError, match="takes the variants' scores by name"):
        compare_many([1.0], {})
