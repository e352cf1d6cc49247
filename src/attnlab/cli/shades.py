"""Weights as shaded characters, so that a table in the terminal is also a heat map."""

import math
import sys

BLOCKS = " ░▒▓█"
LETTERS = " .:*#"
"""For terminals that cannot print blocks."""
LEAST = 0.02
"""The smallest share that is shaded."""


def shade(share: float) -> str:
    """Return two characters that are darker the nearer a share is to 1; blanks for less than LEAST."""
    ramp = BLOCKS if _can_print(BLOCKS) else LETTERS
    if math.isnan(share) or abs(share) < LEAST:
        return ramp[0] * 2
    most = len(ramp) - 1
    return ramp[max(1, min(most, round(abs(share) * most)))] * 2


def format_weight(value: float, largest: float = 1.0) -> str:
    """Return a number with three decimals after its shade; a dash for NaN."""
    if math.isnan(value):
        return "   –"
    return f"{shade(value / largest if largest else 0.0)} {value:.3f}"


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
