"""Residuals below the rounding of float64 are printed as 0, with a word; larger ones and an exact 0 as they are."""

import math

import pytest

from attnlab.kernels.rounding import is_rounding, show_residual


@pytest.mark.parametrize(
    ("residual", "size", "text"),
    [
        (8.8e-17, 1.0, "0 (to rounding)"), (-8.8e-17, 1.0, "0 (to rounding)"), (0.0, 1.0, "0"), (1e-12, 1.0, "1e−12"),
        (1e-12, 1e6, "0 (to rounding)"), (8.8e-17, 1e-6, "8.8e−17"), (0.0123456, 1.0, "0.0123"),
        (math.inf, 1.0, "inf"), (math.nan, 1.0, "nan"),
    ],
)  # fmt: skip
def test_a_residual_is_shown_with_its_digits_unless_it_is_rounding(residual: float, size: float, text: str) -> None:
    assert show_residual(residual, size) == text


def test_a_size_that_is_not_finite_makes_nothing_rounding() -> None:
    assert not is_rounding(1.0, math.inf)
    assert not is_rounding(1e-17, math.nan)
