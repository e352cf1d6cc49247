"""Cells of the results table: numbers with the digits that an interval needs, dashes for what is unknown."""

import math

import pytest

from attnlab.reports.study.cells import format_comparison, make_number_cell
from attnlab.statistics import compare
from attnlab.statistics.formatting import show_value

from .made import BASE, HIGH


def test_a_missing_number_is_a_dash_in_a_column_of_numbers() -> None:
    for value in (None, math.nan):
        cell = make_number_cell(value)
        assert (cell.text, cell.number, cell.is_number) == ("–", None, True)
    assert make_number_cell(0.5, show_value).text == "0.5"
    assert show_value(-1234.56) == "−1235"


@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_an_end_of_an_interval_is_never_rounded_to_0(factor: float) -> None:
    baseline = {seed: factor * value for seed, value in enumerate(BASE)}
    comparison = compare(baseline, {seed: factor * value for seed, value in enumerate(HIGH)}, smallest=0.02)
    difference, ends = format_comparison(comparison).split(" ", 1)
    assert float(difference) == pytest.approx(factor * 0.102, rel=0.05)
    assert all(float(end) > 0 for end in ends.strip("[]").split(", "))


def test_a_single_pair_has_no_interval() -> None:
    assert format_comparison(compare({1: 0.5}, {1: 0.6}, smallest=0.02)) == "+0.1"
