"""Weights as shades of a character, so that a table in the terminal is a heat map too."""

from __future__ import annotations

import math
import sys

BLOCKS = " ░▒▓█"
LETTERS = " .:*#"
"""For terminals that have no blocks."""
LEAST = 0.02
"""The smallest part that has a shade."""


def shade(part: float) -> str:
    """Return two characters that are the darker the nearer a part is to 1; blank for nothing worth seeing."""
    ramp = BLOCKS if _can_print(BLOCKS) else LETTERS
    if math.isnan(part) or abs(part) < LEAST:
        return ramp[0] * 2
    most = len(ramp) - 1
    return ramp[max(1, min(most, round(abs(part) * most)))] * 2


def format_weight(value: float, largest: float = 1.0) -> str:
    """Return a number with three decimals behind its shade; a dash where there is none."""
    if math.isnan(value):
        return "   –"
    return f"{shade(value / largest if largest else 0.0)} {value:.3f}"


def _can_print(text: str) -> bool:
    """Tell whether the terminal's encoding has these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
