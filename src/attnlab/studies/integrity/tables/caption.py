"""What the text around a table says: over how many seeds it is, what its ± is, and which metric it holds."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Literal

from .metrics import split_words, standardise_metric

SpreadKind = Literal["sd", "se", "ci"]
SPREADS: tuple[SpreadKind, ...] = ("sd", "se", "ci")
SPREAD_NAMES = {"sd": "SD", "se": "standard error", "ci": "95 % interval"}
NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twenty": 20,
}  # fmt: skip
RUNS = r"(?:seeds|runs|trials|initiali[sz]ations|restarts|repetitions|repeats|replications|replicates)"
SEEDS = re.compile(
    rf"\b(\d+|{'|'.join(NUMBERS)})\s+(?:[a-z-]+\s+){{0,2}}{RUNS}\b|\b{RUNS}\s*\(\s*n\s*=\s*(\d+)\s*\)", re.IGNORECASE
)
MARKUP = re.compile(r"\\[,;! ]|[$~{}]")
"""LaTeX between a number and its word, as in $n=5$ seeds."""
ABBREVIATED_SE = re.compile(r"\bs\.\s?e\.(?:\s?m\.?)?|(?:±|\\pm\$?)\s*SE\b", re.IGNORECASE)
ABBREVIATED_SD = re.compile(r"\bs\.\s?d\.|(?:±|\\pm\$?)\s*SD\b", re.IGNORECASE)
PLAIN_METRICS = frozenset(
    {"accuracy", "acc", "f1", "bleu", "perplexity", "ppl", "loss", "wer", "cer", "mcc", "auc", "auroc", "em", "rouge",
     "bpb", "bpc", "nll", "xent", "crossentropy", "mse", "rmse", "fid", "miou", "ndcg", "mrr"}
)  # fmt: skip
"""Metrics whose names are no common words of a caption or of the name of a file."""
LOSSES = frozenset({"nll", "xent", "crossentropy", "mse"})
"""What a loss may be: 'cross-entropy loss' is one metric."""


def find_num_seeds(caption: str) -> int | None:
    """Return the number of seeds that a caption names, such as 'over 5 random seeds'; None if none or several."""
    words = [match[1] or match[2] for match in SEEDS.finditer(MARKUP.sub(" ", caption))]
    found = {NUMBERS.get(word.lower()) or int(word) for word in words}
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
    for text, source in ((caption, "the caption"), (Path(path).stem, "the file's name")):
        if len(found := _list_metrics(text)) == 1:
            return found[0], source
    return "", ""


def _list_metrics(text: str) -> list[str]:
    """Return the metrics that a text names, each once, also by two words such as cross-entropy."""
    words = split_words(text)
    pairs = [f"{first}{second}" for first, second in pairwise(words)]
    found = {standardise_metric(word): word for word in reversed([*pairs, *words]) if word in PLAIN_METRICS}
    if LOSSES & {*found}:
        found.pop("loss", None)
    return list(found.values())
