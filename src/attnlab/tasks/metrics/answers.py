"""Two answers compared as the SQuAD scripts compare them: exact match and token F1 after normalising both.

Rajpurkar et al. 2016 (v1.1) and 2018 (v2.0). The versions differ where an answer has no tokens left: v1.1 gives F1 0,
v2.0 gives 1 if both are empty.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Lower the case, then drop ASCII punctuation, English articles and spare whitespace, in this order."""
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(NO_PUNCTUATION)).split())


def exact(prediction: str, gold: str) -> int:
    """Return 1 if both answers are the same once normalised, else 0."""
    return int(normalise(prediction) == normalise(gold))


def f1(prediction: str, gold: str, *, empty_agrees: bool = False) -> float:
    """Return the harmonic mean of precision and recall of tokens; `empty_agrees` is v2.0's rule for empty answers."""
    predicted, wanted = normalise(prediction).split(), normalise(gold).split()
    if empty_agrees and not (predicted and wanted):
        return float(predicted == wanted)
    num_same = (Counter(predicted) & Counter(wanted)).total()
    if num_same == 0:
        return 0.0
    precision, recall = num_same / len(predicted), num_same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def best_exact(prediction: str, golds: Sequence[str]) -> int:
    """Return the exact match with the gold answer that fits best."""
    return max(exact(prediction, gold) for gold in golds)


def best_f1(prediction: str, golds: Sequence[str], *, empty_agrees: bool = False) -> float:
    """Return the F1 with the gold answer that fits best."""
    return max(f1(prediction, gold, empty_agrees=empty_agrees) for gold in golds)


def keep_golds(answers: Sequence[str]) -> list[str]:
    """Return v2.0's gold answers: those not empty once normalised, or the empty one if there is none."""
    return [answer for answer in answers if normalise(answer)] or [""]
