"""What a cell of a table holds: a number, or a mean with its spread, such as `82.1 ± 0.4` or `82.1 (0.4)`."""

import math
import re
from dataclasses import dataclass

UNREPORTED = frozenset({"", "-", "–", "—", "--", "---", "na", "n/a", "n.a."})
"""Cells that say nothing of a run: in a table of means it may never have been made."""
NOTHING = UNREPORTED | frozenset({
    "nan", "none", "null", "inf", "-inf", "+inf", "infinity", "-infinity",
    "failed", "diverged", "crashed", "oom", "killed", "running", "error", "timeout", "preempted", "∞", "x", "✗",
})  # fmt: skip
"""Cells of a run without a score."""
MARKS = "*†‡§¶^ \t\N{NO-BREAK SPACE}"
"""Marks of footnotes and of the best value, which are no part of the number."""
# No two repeated parts that match the same characters are neighbours, so that a long cell takes linear time.
PERCENT = r"(?:\s*%)?"
NUMBER = r"[+\-−]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+\-−]?\d+)?"
SPREAD = rf"(?:±|\+/[-−]|\+[-−])\s*({NUMBER}){PERCENT}"
IN_BRACKETS = rf"\(\s*(\d*\.\d+|0){PERCENT}\s*\)"
SUMMARY = re.compile(rf"({NUMBER}{PERCENT})\s*(?:{SPREAD}|\(\s*{SPREAD}\s*\)|\[\s*{SPREAD}\s*\]|{IN_BRACKETS})\s*(%?)")
CHANGE = re.compile(rf"({NUMBER}{PERCENT})\s*\(\s*[+\-−↑↓]\s*{NUMBER}{PERCENT}\s*\)")
"""A value with its change, as in `82.1 (+0.4)`: the change is not a spread."""
LAST_DIGITS = re.compile(r"([+\-−]?\d+\.(\d+))\((\d{1,3})\)")
"""Siunitx's notation: 92.7(12) is 92.7 ± 1.2. With a space, the brackets may be something else."""
THOUSANDS = re.compile(r"[+\-−]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True)
class CellFigure:
    """A number as written, with its percent sign, and the spread beside it, None if there is none."""

    value: float
    text: str
    spread: float | None = None


def parse_number(text: str) -> float | None:
    """Read a number, with or without a percent sign; None if it is not a finite number."""
    try:
        value = float(text.removesuffix("%").replace("−", "-"))
    except ValueError:
        return float(text.replace(",", "").replace("−", "-")) if THOUSANDS.fullmatch(text) else None
    return value if math.isfinite(value) else None


def parse_figure(text: str) -> CellFigure | None:
    """Read a cell: a number, a mean with its spread, or a number with its change; None if it is neither."""
    text = text.strip(MARKS)
    value = parse_number(text)
    if value is not None:
        return CellFigure(value, text)
    if short := LAST_DIGITS.fullmatch(text):
        value = parse_number(short[1])
        return None if value is None else CellFigure(value, short[1], float(f"{short[3]}e-{len(short[2])}"))
    match, spread = SUMMARY.fullmatch(text), None
    if match is not None:
        spread = parse_number(next(group for group in match.groups()[1:5] if group is not None))
        if spread is None or spread < 0:
            return None
    match = match or CHANGE.fullmatch(text)
    if match is None:
        return None
    written = match[1].replace(" ", "").strip(MARKS)
    if spread is not None and match[6] and not written.endswith("%"):
        written += "%"
    value = parse_number(written)
    return None if value is None else CellFigure(value, written, spread)


def has_last_digits(text: str) -> bool:
    """Tell whether a cell gives its spread in units of the last digit, as in 92.7(4)."""
    return LAST_DIGITS.fullmatch(text.strip(MARKS)) is not None


def is_unreported(text: str) -> bool:
    """Tell whether a cell is empty, and does not say that a run failed."""
    return text.strip(MARKS).lower() in UNREPORTED


def is_empty(text: str) -> bool:
    """Tell whether a cell is that of a run without a score."""
    return text.strip(MARKS).lower() in NOTHING
