"""The rounding of float64, in which residuals are computed: one below it is 0, and printed as such."""

import math
import sys

ROUNDINGS = 8
"""Roundings that a residual of a few operations consists of."""
ZERO = "0 (to rounding)"


def is_rounding(residual: float, size: float = 1.0, num_terms: int = 0) -> bool:
    """Tell whether a residual is the rounding of float64. size, num_terms: of the numbers that it is a sum of."""
    return 0 < abs(residual) <= (ROUNDINGS + num_terms) * sys.float_info.epsilon * size < math.inf


def show_residual(residual: float, size: float = 1.0, num_terms: int = 0) -> str:
    """Write a residual with three digits, or as 0 if it is rounding; one that is exactly 0 is just 0."""
    return ZERO if is_rounding(residual, size, num_terms) else f"{residual:.3g}".replace("-", "−")
