"""A difference is written with its sign and interval, in percent on the log scale."""

import math

from attnlab.reports.differences import format_difference


def test_a_difference_has_its_sign_and_interval() -> None:
    assert format_difference(0.5, (-0.25, 1.25)) == "+0.5 [-0.25, +1.25]"
    assert format_difference(-3.0, (-4.0, -2.0), "log") == "-3 % [-4, -2]"


def test_one_seed_has_no_interval() -> None:
    assert format_difference(0.123456, (math.nan, math.nan)) == "+0.1235"
    assert format_difference(1.0, (-math.inf, math.inf)) == "+1"
