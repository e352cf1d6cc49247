"""Runs that give one answer to everything: constant, or nearly so, where the labels are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from .finding import Finding
from .table import Answers, ResultTable

CHECK = "one answer only"
FEWEST = 10
"""Answers from which on a constant one means anything."""
NEARLY = 0.99
VARIED = 0.95
"""Labels of which one class is at most this share are not nearly constant themselves."""


def check_predictions(table: ResultTable) -> Iterator[Finding]:
    """Look at the answers of each run."""
    for answers in table.answers:
        yield from _one_answer(answers)


def _one_answer(answers: Answers) -> Iterator[Finding]:
    usual = max(Counter(answers.labels).values()) / len(answers.labels) if answers.labels else None
    if is_one_answer(Counter(answers.predictions), usual):
        whose = " ".join(filter(None, (f"arm '{answers.arm}'", answers.group, f"seed {answers.seed}")))
        yield one_answer(whose, Counter(answers.predictions), usual)


def is_one_answer(given: Mapping[str, int], usual: float | None) -> bool:
    """Tell whether answers, by how often each was given, are constant or nearly so; usual: the most frequent label."""
    num, most = sum(given.values()), max(given.values(), default=0)
    if num < FEWEST:
        return False
    return (most == num and (usual is None or usual < 1)) or (
        most / num >= NEARLY and usual is not None and usual <= VARIED
    )


def one_answer(whose: str, given: Mapping[str, int], usual: float | None) -> Finding:
    """Say what is nearly always answered."""
    answer, count = max(given.items(), key=lambda pair: pair[1])
    share = count / sum(given.values())
    how = "every answer is" if share == 1 else f"{share:.1%} of the answers are"
    majority = "" if usual is None else f"; always the most frequent label would be right {usual:.1%} of the time"
    return Finding(
        CHECK,
        f"{whose}: {how} '{answer}'{majority}",
        places=(whose,),
        data={"answer": answer, "share": share, "majority": usual},
    )
