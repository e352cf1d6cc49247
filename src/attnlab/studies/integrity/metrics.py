"""What a metric's name implies: which direction is better, its limits, and whether it counts correct answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
    "loss", "nll", "ce", "mse", "rmse", "mae", "bpb", "bpc", "bits", "fid", "latency", "seconds",
}  # fmt: skip
UNNAMED = frozenset({"score", "reward", "return", "elo"})
KNOWN = LIMITED | LOWER_IS_BETTER | UNNAMED

PERCENT, FRACTION = 100.0, 1.0
"""The largest value of a limited metric in either unit."""
FEW = 0.2
"""Up to this share of values above 1, a metric is taken for fractions some of which are impossible."""

SETS = {
    10570: "SQuAD v1.1's development set", 11873: "SQuAD v2.0's development set", 3270: "BoolQ's validation set",
    9815: "MNLI's matched validation set", 9832: "MNLI's mismatched validation set", 40430: "QQP's validation set",
    5463: "QNLI's validation set", 872: "SST-2's validation set", 1043: "CoLA's validation set",
    408: "MRPC's validation set", 277: "RTE's validation set",
}  # fmt: skip
"""Evaluation sets that can be recognised by their size."""


def words_of(name: str) -> list[str]:
    """Split a name into its words, in lower case."""
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]


def kind_of(name: str) -> str:
    """Return the known metric in a name, such as 'accuracy' in eval_accuracy, or an empty string."""
    words = words_of(name)
    joined = "".join(words)
    return next((word for word in (joined, *reversed(words)) if word in KNOWN), "")


def higher_is_better(name: str) -> bool:
    """Tell which direction is better; a metric that is not known to be a loss is taken for a score."""
    return kind_of(name) not in LOWER_IS_BETTER


def scale_of(name: str, values: Iterable[float]) -> float | None:
    """Return 100 for a metric in percent, 1 for fractions, None for a metric without limits."""
    if kind_of(name) not in LIMITED:
        return None
    sizes = [abs(value) for value in values if value]
    num_above = sum(size > 1 for size in sizes)
    return PERCENT if num_above > FEW * len(sizes) or max(sizes, default=0) >= 10 else FRACTION


def default_smallest(name: str, scale: float | None, values: list[float]) -> float:
    """Return the default smallest difference of interest: one point, or 1 % of the mean for a metric without limits.

    For a perplexity it is a change of 1 percent.
    """
    if kind_of(name) in PERPLEXITIES:
        return 1.0
    if scale is not None:
        return scale / 100
    mean = sum(abs(value) for value in values) / max(len(values), 1)
    return float(f"{0.01 * mean:.2g}") or 1.0
