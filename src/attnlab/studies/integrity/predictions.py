"""Runs that give one answer to everything: predictions that are constant, or nearly so, although the labels vary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from .finding import IntegrityFinding, IntegrityKind
from .table import Answers, ResultTable

FEWEST = 10
"""Fewer constant answers are no evidence."""
NEARLY = 0.99
VARIED = 0.95
"""Labels vary if the most frequent one has at most this share."""


def check_predictions(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Examine the answers of each run."""
    for answers in table.answers:
        yield from _one_answer(answers)


def _one_answer(answers: Answers) -> Iterator[IntegrityFinding]:
    usual = max(Counter(answers.labels).values()) / len(answers.labels) if answers.labels else None
    if is_one_answer(Counter(answers.predictions), usual):
        whose = " ".join(filter(None, (f"arm '{answers.arm}'", answers.group, f"seed {answers.seed}")))
        yield one_answer(whose, Counter(answers.predictions), usual)


def is_one_answer(given: Mapping[str, int], usual: float | None) -> bool:
    """Tell whether answers are constant or nearly so. given: how often each was given. usual: the majority rate."""
    num, most = sum(given.values()), max(given.values(), default=0)
    if num < FEWEST:
        return False
    return (most == num and (usual is None or usual < 1)) or (
        most / num >= NEARLY and usual is not None and usual <= VARIED
    )


def one_answer(whose: str, given: Mapping[str, int], usual: float | None) -> IntegrityFinding:
    """Report the answer that is nearly always given."""
    answer, count = max(given.items(), key=lambda pair: pair[1])
    share = count / sum(given.values())
    how = "every answer is" if share == 1 else f"{share:.1%} of the answers are"
    majority = "" if usual is None else f"; always predicting the most frequent label would be correct for {usual:.1%}"
    return IntegrityFinding(
        IntegrityKind.ONE_ANSWER,
        f"{whose}: {how} '{answer}'{majority}",
        places=(whose,),
        data={"answer": answer, "share": share, "majority": usual},
    )
