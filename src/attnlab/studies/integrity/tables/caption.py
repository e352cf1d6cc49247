"""What the text around a table says: over how many seeds it is, what its ± is, and which metric it holds."""

import re
from pathlib import Path
from typing import Literal

from .metrics import recognise_metric, split_words

SpreadKind = Literal["sd", "se", "ci"]
SPREADS: tuple[SpreadKind, ...] = ("sd", "se", "ci")
SPREAD_NAMES = {"sd": "SD", "se": "standard error", "ci": "95 % interval"}
NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twenty": 20,
}  # fmt: skip
SEEDS = re.compile(rf"\b(\d+|{'|'.join(NUMBERS)})\s+(?:[a-z-]+\s+){{0,2}}(?:seeds|runs|trials)\b", re.IGNORECASE)
ABBREVIATED_SE = re.compile(r"\bs\.\s?e\.(?:\s?m\.?)?|(?:±|\\pm\$?)\s*SE\b", re.IGNORECASE)
ABBREVIATED_SD = re.compile(r"\bs\.\s?d\.|(?:±|\\pm\$?)\s*SD\b", re.IGNORECASE)
PLAIN_METRICS = frozenset(
    {"accuracy", "acc", "f1", "bleu", "perplexity", "ppl", "loss", "wer", "mcc", "auc", "em", "rouge"}
)
"""Metrics whose names are no common words of a caption."""


def find_num_seeds(caption: str) -> int | None:
    """Return the number of seeds that a caption names, such as 'over 5 random seeds'; None if none or several."""
    found = {NUMBERS.get(match[1].lower()) or int(match[1]) for match in SEEDS.finditer(caption)}
    number = found.pop() if len(found) == 1 else None
    return number if number is not None and 2 <= number <= 1000 else None


def find_spread_kind(caption: str) -> SpreadKind | None:
    """Return what a caption calls the spread; None if it does not say."""
    text = ABBREVIATED_SD.sub(" std ", ABBREVIATED_SE.sub(" sem ", caption))
    words = " ".join(split_words(text))
    kinds: list[SpreadKind] = []
    if re.search(r"\b(standard deviations?|stds?(?! err)|stdev|stddev)\b", words):
        kinds.append("sd")
    if re.search(r"\b(standard errors?|std err(?:or)?s?|stderr|sems?)\b", words):
        kinds.append("se")
    if re.search(r"\b(confidence intervals?|95 cis?|ci95|cis? 95|cis? at 95)\b", words):
        kinds.append("ci")
    return kinds[0] if len(kinds) == 1 else None


def find_metric(path: str, caption: str) -> tuple[str, str]:
    """Return the one metric that the caption or the file's name has, and which of the two; empty if there is none."""
    found = dict.fromkeys(word for word in split_words(caption) if word in PLAIN_METRICS)
    if len(found) == 1:
        return next(iter(found)), "the caption"
    in_name = [word for word in split_words(Path(path).stem) if word in PLAIN_METRICS and recognise_metric(word)]
    return (in_name[0], "the file's name") if len(in_name) == 1 else ("", "")
