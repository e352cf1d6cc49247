"""What the name of a metric says: which way is better, what values it can have, and whether it counts right answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

COUNTED = frozenset({"acc", "accuracy", "em", "exact", "exactmatch", "top1", "top5"})
"""Shares of examples that are right: multiples of 1/n."""
BOUNDED = COUNTED | {
    "f1", "precision", "recall", "auc", "auroc", "map", "mrr", "bleu", "rouge", "rouge1", "rouge2", "rougel", "meteor",
    "squad", "ndcg", "iou", "miou", "dice",
}  # fmt: skip
"""Between 0 and 1, or 0 and 100 in percent."""
SIGNED = frozenset({"mcc", "matthews", "pearson", "spearman", "r2", "kappa"})
LOWER_IS_BETTER = frozenset({
    "loss", "nll", "ce", "ppl", "perplexity", "err", "error", "wer", "cer", "mse", "rmse", "mae", "bpb", "bpc", "bits",
    "fid", "latency", "seconds",
})  # fmt: skip
KNOWN = BOUNDED | SIGNED | LOWER_IS_BETTER | {"score", "reward", "return", "elo"}

SETS = {
    10570: "SQuAD v1.1's development set", 11873: "SQuAD v2.0's development set", 3270: "BoolQ's validation set",
    9815: "MNLI's matched validation set", 9832: "MNLI's mismatched validation set", 40430: "QQP's validation set",
    5463: "QNLI's validation set", 872: "SST-2's validation set", 1043: "CoLA's validation set",
    408: "MRPC's validation set", 277: "RTE's validation set",
}  # fmt: skip
"""Evaluation sets whose size gives them away."""


def words_of(name: str) -> list[str]:
    """Split a name at whatever is no letter or digit, in small letters."""
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]


def kind_of(name: str) -> str:
    """Return the word of a name that is a known metric, or an empty string."""
    words = words_of(name)
    joined = "".join(words)
    return next((word for word in (joined, *reversed(words)) if word in KNOWN), "")


def higher_is_better(name: str) -> bool:
    """Tell which way a metric is better; what is not known to be a loss is taken for a score."""
    return kind_of(name) not in LOWER_IS_BETTER


def scale_of(name: str, values: Iterable[float]) -> float | None:
    """Return 100 for a metric in percent, 1 for a share, None for one without limits."""
    if kind_of(name) not in BOUNDED | SIGNED:
        return None
    return 100.0 if any(abs(value) > 1 for value in values) else 1.0


def default_smallest(name: str, values: list[float]) -> float:
    """Return the smallest difference of interest where none is given: a point, or 1 % of what is usual."""
    scale = scale_of(name, values)
    if scale is not None:
        return scale / 100
    usual = sum(abs(value) for value in values) / max(len(values), 1)
    return 0.01 * usual or 1.0
