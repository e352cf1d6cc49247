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
RUN = r"(?:seed|run|trial|initiali[sz]ation|restart|repetition|repeat|replication|replicate)"
RUNS = rf"(?:{RUN}s)"
SEEDS = re.compile(
    rf"(?<!\d of )(?<!needs )(?<!need )\b(\d+|{'|'.join(NUMBERS)})\s+(?:[a-z-]+\s+){{0,2}}{RUNS}\b"
    rf"|\b{RUNS}\s*\(\s*n\s*=\s*(\d+)\s*\)",
    re.IGNORECASE,
)
"""How many seeds a table is over: not all runs of a study, as in '30 of 30 runs', nor what another test needs."""
KIND = r"(?:(?:random|training|independent|different|fixed|initial|full|separate|complete|experimental)[\s-]+)?"
"""Words between a number and `seed`; others, as in '1 GPU per run', give the number of something else."""
ONE_RUN = re.compile(
    r"(?<![\w.-])(?<!\bper )(?<!\beach )(?<!\bevery )(?<!\btable )(?<!\bfigure )(?<!\bsection )"
    rf"(?:1|one|single)[\s-]+(?:single[\s-]+)?{KIND}{RUN}s?\b"
    rf"(?!\s+(?:(?:per|for each|for every|with each)\s+{KIND}seed|takes|took|needs|requires|lasts|costs|among|out of))"
    r"|\b(?:run|ran|trained)\s+(?:only\s+|just\s+)?once\b",
    re.IGNORECASE,
)
"""One seed in words: '1 seed', 'a single run', 'one run each', 'trained once'; not '5 seeds, one run per seed'."""
COUNT = re.compile(
    r"(?<![\w-])(?<!gram )(?<!gram \()(?<!bleu )(?<!bleu \()(?<!rouge )(?<!rouge \()"
    r"n\s*=\s*(\d+)\s*(?=[).,;:\]](?!\d)|$|each\b|per\b)",
    re.IGNORECASE,
)
MAX_COUNT = 9
"""A larger n without `seeds` beside it may count examples."""
SPREAD_SIGNS = re.compile(r"±|\\pm\b|\bmeans?\b|\baverage", re.IGNORECASE)
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
    """Return the number of seeds that a caption names, such as 'over 5 random seeds'; None if none or several.

    'A single run' beside '5 seeds' may be about one row, or about each seed, so that 5 counts.
    """
    numbers = _list_numbers_of_seeds(caption)
    if len(numbers) == 1:
        return numbers.pop()
    return 1 if not numbers and _find_one_run(caption) else None


def describe_doubt_about_seeds(caption: str) -> str:
    """Say what else a caption says of the number of seeds; empty if it says one thing or nothing."""
    numbers, one_run = _list_numbers_of_seeds(caption), _find_one_run(caption)
    if len(numbers) > 1:
        shown = " and ".join(map(str, sorted(numbers)))
        return f"the caption names {shown} seeds, so none is taken; --seeds N or a column n_seeds gives the number"
    if numbers and one_run:
        return f"the caption also says '{one_run}'; if that is about some rows, a column n_seeds gives their number"
    return ""


def _list_numbers_of_seeds(caption: str) -> set[int]:
    """Return the numbers of seeds above 1 that a caption names."""
    text = MARKUP.sub(" ", caption)
    words = [match[1] or match[2] for match in SEEDS.finditer(text)]
    if not words and SPREAD_SIGNS.search(caption):
        words = [match[1] for match in COUNT.finditer(text) if int(match[1]) <= MAX_COUNT]
    return {number for word in words if 2 <= (number := NUMBERS.get(word.lower()) or int(word)) <= 1000}


def _find_one_run(caption: str) -> str:
    """Return the words that say that there is one seed, such as 'a single run' or 'n = 1'; empty if there are none."""
    text = " ".join(MARKUP.sub(" ", caption).split())
    match = ONE_RUN.search(text) or next((found for found in COUNT.finditer(text) if int(found[1]) == 1), None)
    return "" if match is None else match[0].strip(" (")


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
