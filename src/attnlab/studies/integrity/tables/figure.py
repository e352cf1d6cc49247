"""What a cell of a table holds: a number, or a mean with its spread, such as `82.1 ± 0.4` or `82.1 (0.4)`."""

import math
import re
from dataclasses import dataclass, field

UNREPORTED = frozenset({"", "-", "–", "—", "--", "---", "na", "n/a", "n.a."})
"""Cells that say nothing of a run: in a table of means it may never have been made."""
NOTHING = UNREPORTED | frozenset({
    "nan", "none", "null", "inf", "-inf", "+inf", "infinity", "-infinity",
    "failed", "diverged", "crashed", "oom", "killed", "running", "error", "timeout", "preempted", "not ended",
    "∞", "x", "✗",
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
INTERVAL = re.compile(
    rf"({NUMBER}{PERCENT})\s*[(\[]\s*({NUMBER}){PERCENT}\s*(?:[,;–—]|\bto\b|(?<=[\d%\s])-)\s*({NUMBER}){PERCENT}\s*[)\]]"
)
"""A mean with both ends of an interval, as in `71.2 [69.8, 72.6]` or `71.2 (69.8–72.6)`."""
BOUNDS = re.compile(rf"[(\[]\s*{NUMBER}{PERCENT}\s*(?:[,;–—]|\bto\b)\s*{NUMBER}{PERCENT}\s*[)\]]")
"""Both ends of an interval alone, as in `[-0.4, 1.2]`."""
SIGNED_CHANGE = rf"[+\-−↑↓]\s*{NUMBER}{PERCENT}"
CHANGE = re.compile(
    rf"({NUMBER}{PERCENT})\s*(?:\(\s*{SIGNED_CHANGE}\s*\)|[↑↓]\s*{NUMBER}{PERCENT}"
    rf"|\$?[_^]\{{\s*\(?{SIGNED_CHANGE}\)?\s*\}}\$?)"
)
"""A value with its change, as in `82.1 (+0.4)`, `82.1 ↑0.4` or `82.1$_{+0.4}$`: the change is not a spread."""
FOOTNOTE = re.compile(r"(?<=[\d%)])\s?\$?\^(?:[a-z*†‡§¶]|\{[a-z*†‡§¶]\})\$?$")
"""The mark of a footnote as a superscript, as in `82.1^a`."""
LAST_DIGITS = re.compile(r"([+\-−]?\d+\.(\d+))\((\d{1,3})\)")
"""Siunitx's notation: 92.7(12) is 92.7 ± 1.2. With a space, the brackets may be something else."""
THOUSANDS = re.compile(r"[+\-−]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True)
class CellFigure:
    """A number as written, with its percent sign, and the spread beside it, None if there is none.

    spread_text: the spread as written, without a percent sign that stands behind both numbers. interval: both ends, if
    the cell gives these; the spread is then half of the interval.
    """

    value: float
    text: str
    spread: float | None = None
    spread_text: str = field(default="", compare=False)
    interval: tuple[float, float] | None = None
    change: str = field(default="", compare=False)

    @property
    def is_symmetrical(self) -> bool:
        """Whether the value is the middle of its interval, as far as the digits tell; True without an interval."""
        if self.interval is None:
            return True
        decimals = len(self.text.removesuffix("%").partition(".")[2])
        # Half a digit of the mean, and as much of the middle of the two ends.
        slack = 10.0**-decimals * 1.01
        return abs(self.value - sum(self.interval) / 2) <= slack + 1e-9 * abs(self.value)


def parse_number(text: str) -> float | None:
    """Read a number, with or without a percent sign; None if it is not a finite number."""
    try:
        value = float(text.removesuffix("%").replace("−", "-"))
    except ValueError:
        return float(text.replace(",", "").replace("−", "-")) if THOUSANDS.fullmatch(text) else None
    return value if math.isfinite(value) else None


def parse_figure(text: str) -> CellFigure | None:
    """Read a cell: a number, a mean with its spread, or a number with its change; None if it is neither."""
    text = FOOTNOTE.sub("", text.strip(MARKS))
    value = parse_number(text)
    if value is not None:
        return CellFigure(value, text)
    if short := LAST_DIGITS.fullmatch(text):
        value = parse_number(short[1])
        decimals = len(short[2])
        last = float(f"{short[3]}e-{decimals}")
        return None if value is None else CellFigure(value, short[1], last, f"{last:.{decimals}f}")
    if bounds := INTERVAL.fullmatch(text):
        return _read_interval(bounds)
    match, spread, spread_text = SUMMARY.fullmatch(text), None, ""
    if match is not None:
        spread_text = next(group for group in match.groups()[1:5] if group is not None)
        spread = parse_number(spread_text)
        if spread is None or spread < 0:
            return None
    change = "" if match is not None or CHANGE.fullmatch(text) is None else text
    match = match or CHANGE.fullmatch(text)
    if match is None:
        return None
    written = match[1].replace(" ", "").strip(MARKS)
    if spread is not None and match[6] and not written.endswith("%"):
        written += "%"
    value = parse_number(written)
    return None if value is None else CellFigure(value, written, spread, spread_text, change=change)


def _read_interval(match: re.Match[str]) -> CellFigure | None:
    """Read a mean with both ends of an interval; None if the mean is not between them."""
    value, low, high = (parse_number(text.replace(" ", "")) for text in match.groups())
    if value is None or low is None or high is None or not low <= value <= high:
        return None
    decimals = max(len(text.partition(".")[2]) for text in match.groups()[1:])
    # Half of an odd last digit has one digit more.
    half = f"{(high - low) / 2:.{decimals + 1}f}"
    return CellFigure(
        value, match[1].replace(" ", ""), float(half), half.removesuffix("0").removesuffix("."), (low, high)
    )


def has_last_digits(text: str) -> bool:
    """Tell whether a cell gives its spread in units of the last digit, as in 92.7(4)."""
    return LAST_DIGITS.fullmatch(text.strip(MARKS)) is not None


def is_unreported(text: str) -> bool:
    """Tell whether a cell has a mark or word for no score that a table of means uses for any reason, such as `✗`."""
    return text.strip(MARKS).lower() in UNREPORTED | {"x", "✗", "oom"}


def is_empty(text: str) -> bool:
    """Tell whether a cell is that of a run without a score."""
    return text.strip(MARKS).lower() in NOTHING
