"""The figures of the two official SQuAD scripts, over all questions, under their official names.

v1.1 gives `exact_match` and `f1`. v2.0 gives `exact`, `f1`, the same for questions with (`HasAns_`) and without an
answer (`NoAns_`), and, from scores of having no answer, the best that any threshold on these would have reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnlab.errors import TaskError

from .answers import best_exact, best_f1, keep_golds

Golds = Mapping[str, Sequence[str]]
"""The gold answers of each question, by its id; empty if it is unanswerable."""

EVERY_ANSWER_STANDS = 1.0
"""The official threshold: an answer is dropped only if its score of having none exceeds 1."""


@dataclass(frozen=True)
class SquadFigures:
    """The printed figures of a script, and each question's exact match (0 or 1) and F1 (0 to 1)."""

    figures: Mapping[str, float]
    exact: Mapping[str, float]
    f1: Mapping[str, float]


def score_v1(golds: Golds, predictions: Mapping[str, str]) -> SquadFigures:
    """Score answers as the v1.1 script does; a question without a prediction counts 0."""
    _check_any(golds)
    empty = next((key for key, answers in golds.items() if not answers), None)
    if empty is not None:
        raise TaskError(f"question '{empty}' has no gold answer, and SQuAD v1.1 needs one; score it as squad_v2")
    exact = {key: float(key in predictions and best_exact(predictions[key], golds[key])) for key in golds}
    f1 = {key: best_f1(predictions[key], golds[key]) if key in predictions else 0.0 for key in golds}
    figures = {"exact_match": _average(exact), "f1": _average(f1), "total": len(golds)}
    return SquadFigures(figures, exact, f1)


def score_v2(
    golds: Golds, predictions: Mapping[str, str], no_answer: Mapping[str, float] | None = None,
    threshold: float = EVERY_ANSWER_STANDS,
) -> SquadFigures:  # fmt: skip
    """Score answers as the v2.0 script does; `no_answer` holds each question's score of having none."""
    _check_any(golds)
    _check_complete(golds, predictions, "prediction")
    raw_exact, raw_f1 = compute_raw_scores(golds, predictions)
    exact, f1, best = raw_exact, raw_f1, dict[str, float]()
    if no_answer is not None:
        _check_complete(golds, no_answer, "score of having no answer")
        exact, f1 = (_apply_threshold(raw, no_answer, threshold, golds) for raw in (raw_exact, raw_f1))
        # The best of all thresholds is a bound, since it is tuned on the very labels it scores.
        for name, raw in (("exact", raw_exact), ("f1", raw_f1)):
            value, at = find_best_threshold(golds, predictions, raw, no_answer)
            best |= {f"best_{name}": value, f"best_{name}_thresh": at}
    return SquadFigures({**_average_parts(exact, f1, golds), **best}, exact, f1)


def compute_raw_scores(golds: Golds, predictions: Mapping[str, str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return each question's exact match and F1 before any threshold."""
    wanted = {key: keep_golds(answers) for key, answers in golds.items()}
    exact = {key: float(best_exact(predictions[key], answers)) for key, answers in wanted.items()}
    f1 = {key: best_f1(predictions[key], answers, empty_agrees=True) for key, answers in wanted.items()}
    return exact, f1


def _apply_threshold(
    scores: Mapping[str, float], no_answer: Mapping[str, float], threshold: float, golds: Golds
) -> dict[str, float]:
    """Return the scores with every answer above the threshold replaced by the empty one."""
    return {key: float(not golds[key]) if no_answer[key] > threshold else score for key, score in scores.items()}


def _average_parts(exact: Mapping[str, float], f1: Mapping[str, float], golds: Golds) -> dict[str, float]:
    parts = {
        "": list(golds),
        "HasAns_": [key for key, answers in golds.items() if answers],
        "NoAns_": [key for key, answers in golds.items() if not answers],
    }
    figures: dict[str, float] = {}
    for prefix, keys in parts.items():
        if keys:
            figures[f"{prefix}exact"] = _average({key: exact[key] for key in keys})
            figures[f"{prefix}f1"] = _average({key: f1[key] for key in keys})
            figures[f"{prefix}total"] = len(keys)
    return figures


def find_best_threshold(
    golds: Golds, predictions: Mapping[str, str], scores: Mapping[str, float], no_answer: Mapping[str, float]
) -> tuple[float, float]:
    """Return the best score in percent over all thresholds, and the threshold that reaches it.

    Starting from no answers at all, questions get their answer back in the order of their score of having none.
    """
    reached = best = float(sum(not answers for answers in golds.values()))
    threshold = 0.0
    for key in sorted((key for key in no_answer if key in golds), key=no_answer.__getitem__):
        reached += scores[key] if golds[key] else -float(bool(predictions[key]))
        if reached > best:
            best, threshold = reached, no_answer[key]
    return 100.0 * best / len(golds), threshold


def _average(scores: Mapping[str, float]) -> float:
    return 100.0 * sum(scores.values()) / len(scores)


def _check_any(golds: Golds) -> None:
    if not golds:
        raise TaskError("there is no question to score; give a SQuAD file with at least one")


def _check_complete(golds: Golds, given: Mapping[str, object], what: str) -> None:
    missing = [key for key in golds if key not in given]
    if missing:
        raise TaskError(
            f"{len(missing)} of {len(golds)} questions have no {what}, the first is '{missing[0]}'; "
            "SQuAD v2.0 needs one for each, an empty text for no answer"
        )
