"""Many comparisons: adjusted as statsmodels does, at levels that decide just so."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from attnlab.errors import StatisticsError
from attnlab.statistics import adjust
from attnlab.statistics.families import Role

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


def test_what_is_no_family_is_refused() -> None:
    with pytest.raises(StatisticsError, match="'primary' or 'exploratory'"):
        adjust({"a": 0.1}, "secondary")  # type: ignore[arg-type]
