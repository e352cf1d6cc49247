"""What a metric's name implies (direction, limits, whether it counts correct answers), and its values' resolution.

The resolution is given by the decimals of the values, or is 1/n for a fraction of n examples. Two seeds do not agree to
15 digits by chance, but often on a multiple of 1/100.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from attnlab.inputs import is_whole_number

from .table import Cell

COUNTED = frozenset({"acc", "accuracy", "em", "exact", "exactmatch", "top1", "top5"})
"""Fractions of examples that are correct: multiples of 1/n."""
BOUNDED = COUNTED | {
    "f1", "precision", "recall", "auc", "auroc", "map", "mrr", "bleu", "rouge", "rouge1", "rouge2", "rougel", "meteor",
    "squad", "ndcg", "iou", "miou", "dice",
}  # fmt: skip
"""Between 0 and 1, or 0 and 100 in percent."""
SIGNED = frozenset({"mcc", "matthews", "pearson", "spearman", "r2", "kappa"})
"""Between −1 and 1, or −100 and 100 in percent."""
LIMITED = BOUNDED | SIGNED
RATES = frozenset({"err", "error", "wer", "cer"})
"""Fractions or percentages of mistakes; a word error rate may exceed 100 %."""
PERPLEXITIES = frozenset({"ppl", "perplexity"})
"""Compared by their logarithm: a change is a factor, and a threshold is a percent change."""
LOWER_IS_BETTER = RATES | PERPLEXITIES | {
    "loss", "nll", "ce", "xent", "crossentropy", "mse", "rmse", "mae", "bpb", "bpc", "bits", "fid", "latency",
    "seconds",
}  # fmt: skip
UNNAMED = frozenset({"score", "reward", "return", "elo"})
KNOWN = LIMITED | LOWER_IS_BETTER | UNNAMED

SYNONYMS = {"accuracy": "acc", "perplexity": "ppl", "exact": "em", "exactmatch": "em", "error": "err", "auroc": "auc"}
"""Names of one metric, by its longer name."""

PERCENT, FRACTION = 100.0, 1.0
"""The largest value of a limited metric in either unit."""
FEW = 0.2
"""Up to this share of values above 1, a metric is taken for fractions some of which are impossible."""

LOWER, HIGHER = "↓", "↑"
STATED_DIRECTION = re.compile(
    rf"(?P<lower>{LOWER}|\b(?:lower|smaller)(?: is)? better\b)|"
    rf"(?P<higher>{HIGHER}|\b(?:higher|larger)(?: is)? better\b)",
    re.IGNORECASE,
)
"""What a name says of its direction: an arrow, or 'lower is better'."""

SETS = {
    10570: "SQuAD v1.1's development set", 11873: "SQuAD v2.0's development set", 3270: "BoolQ's validation set",
    9815: "MNLI's matched validation set", 9832: "MNLI's mismatched validation set", 40430: "QQP's validation set",
    5463: "QNLI's validation set", 872: "SST-2's validation set", 1043: "CoLA's validation set",
    408: "MRPC's validation set", 277: "RTE's validation set",
}  # fmt: skip
"""Evaluation sets that can be recognised by their size."""
MAX_EXAMPLES = 100_000
FITTING = 0.9
"""n is accepted if this share of distinct values are multiples of 1/n, so that one fault does not hide it."""
BLOCK = 2000

Values = NDArray[np.float64]


def split_words(name: str) -> list[str]:
    """Split a name into its words, in lower case."""
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]


@cache
def recognise_metric(name: str) -> str:
    """Return the known metric in a name, such as 'accuracy' in eval_accuracy, or an empty string."""
    words = split_words(remove_direction(name))
    # Two words may be one metric, such as cross-entropy.
    pairs = [f"{first}{second}" for first, second in pairwise(words)]
    return next((word for word in ("".join(words), *reversed(pairs), *reversed(words)) if word in KNOWN), "")


def read_direction(name: str) -> bool | None:
    """Return whether a name says that higher is better, as `BLEU ↑` and `xent (lower is better)` do; None if not."""
    stated = {match.lastgroup for match in STATED_DIRECTION.finditer(name)}
    return stated == {"higher"} if len(stated) == 1 else None


def remove_direction(name: str) -> str:
    """Return a name without an arrow or 'lower is better'."""
    return " ".join(re.sub(r"\(\s*\)|\[\s*\]", " ", STATED_DIRECTION.sub(" ", name)).split()) or name


def add_direction(metric: str, column: str) -> str:
    """Return the name of a metric with the direction that a column states, if the metric implies another or none."""
    stated = read_direction(column)
    is_known = bool(recognise_metric(metric)) or read_direction(metric) is not None
    if stated is None or (is_known and stated == higher_is_better(metric)):
        return metric
    return f"{remove_direction(metric)} {HIGHER if stated else LOWER}"


def standardise_metric(name: str) -> str:
    """Return the same word for names of the same metric, such as `acc` and `accuracy`; the name if it is not known."""
    metric = recognise_metric(name)
    return SYNONYMS.get(metric, metric) or remove_direction(name)


def are_same_metric(first: str, second: str) -> bool:
    """Tell whether two names are of one metric, whatever their case and their arrows."""
    return standardise_metric(first).lower() == standardise_metric(second).lower()


def higher_is_better(name: str) -> bool:
    """Tell which direction is better: as the name states, else as the metric implies.

    A metric that is not known to be a loss is taken for a score.
    """
    stated = read_direction(name)
    return recognise_metric(name) not in LOWER_IS_BETTER if stated is None else stated


def choose_smallest(name: str, scale: float | None, values: list[float]) -> float:
    """Return the default smallest difference of interest: one point, or 1 % of the mean for a metric without limits.

    For a perplexity it is a change of 1 percent.
    """
    if recognise_metric(name) in PERPLEXITIES:
        return 1.0
    if scale is not None:
        return scale / 100
    mean = sum(abs(value) for value in values) / max(len(values), 1)
    return float(f"{0.01 * mean:.2g}") or 1.0


def find_resolution(metric: str, cells: Iterable[Cell]) -> tuple[float, float]:
    """Return the smallest difference between values of a metric, and their rounding."""
    known = [cell for cell in cells if cell.value is not None]
    values = np.unique([cell.number for cell in known])
    largest = float(np.abs(values).max()) if values.size else 0.0
    rounding = max(10.0 ** -max((count_decimals(cell.text) for cell in known), default=0), 1e-12 * largest)
    scale = _guess_scale(metric, values)
    counts = {cell.num_examples for cell in known} if recognise_metric(metric) in COUNTED else {None}
    # A number of examples that the table gives holds whatever single values say.
    given = None if None in counts else max((n for n in counts if n is not None), default=None)
    num_examples = given or (_find_smallest_count(values, scale, rounding) if values.size else None)
    return rounding if num_examples is None else max(rounding, scale / num_examples), rounding


def _guess_scale(metric: str, values: Values) -> float:
    """Return 100 for a metric in percent, 1 for fractions and metrics without limits.

    A metric whose name says nothing, such as that of a task, may be an accuracy.
    """
    sizes, name = np.abs(values[values != 0]), recognise_metric(metric)
    is_percent = bool((sizes > 1).sum() > FEW * sizes.size or sizes.max(initial=0) >= 10)
    may_have_limits = name in LIMITED or (name in UNNAMED | {""} and sizes.max(initial=0) <= PERCENT)
    return PERCENT if may_have_limits and is_percent else FRACTION


def count_decimals(text: str) -> int:
    """Count the digits after the decimal point, which an exponent shifts."""
    mantissa, _, exponent = text.lower().removesuffix("%").partition("e")
    digits = len(mantissa.partition(".")[2])
    shift = int(exponent) if is_whole_number(exponent.lstrip("+-")) else 0
    return max(0, min(digits - shift, 17))


def are_multiples(values: Values, n: int | NDArray[np.int64], scale: float, rounding: float) -> NDArray[np.bool_]:
    """Tell for each value whether it is a multiple of 1/n, within its rounding; for several n [m 1], [m values]."""
    scaled = values * n / scale
    slack = n / scale * rounding / 2 * (1 + 1e-6) + 1e-9 * n
    multiples: NDArray[np.bool_] = np.abs(scaled - np.round(scaled)) <= slack
    return multiples


def _find_smallest_count(values: Values, scale: float, rounding: float) -> int | None:
    """Return the smallest n such that nearly all values are multiples of 1/n; None if there is none."""
    few = values[:: max(1, len(values) // 12)]
    for start in range(1, MAX_EXAMPLES, BLOCK):
        counts = np.arange(start, start + BLOCK)
        near = are_multiples(few, counts[:, None], scale, rounding)
        for n in counts[near.mean(axis=1) >= FITTING - 0.15]:
            if are_multiples(values, int(n), scale, rounding).mean() >= FITTING:
                return int(n)
    return None


def find_known_set(values: Values, scale: float, rounding: float) -> int | None:
    """Return the size of the known evaluation set that nearly all values fit; None if there is none."""
    if len(values) < 5:
        return None
    # If most rounded numbers are multiples of 1/n, being one is no evidence.
    sizes = [n for n in SETS if n / scale * rounding < 0.2]
    return next((n for n in sizes if are_multiples(values, n, scale, rounding).mean() >= FITTING), None)


def find_limits(metric: str, ceiling: float | None) -> tuple[float, float] | None:
    """Return the lowest and the highest score of a metric whose best score is known; None if it has none."""
    name = recognise_metric(metric)
    if ceiling is None or name not in LIMITED:
        return None
    return (-ceiling if name in SIGNED else 0.0), ceiling
