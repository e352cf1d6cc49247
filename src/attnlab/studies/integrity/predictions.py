"""Runs that give one answer to everything: constant, or nearly so, where the labels are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

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
        if len(answers.predictions) >= FEWEST:
            yield from _one_answer(answers)


def _one_answer(answers: Answers) -> Iterator[Finding]:
    answer, count = Counter(answers.predictions).most_common(1)[0]
    share = count / len(answers.predictions)
    usual = max(Counter(answers.labels).values()) / len(answers.labels) if answers.labels else None
    is_constant = share == 1 and (usual is None or usual < 1)
    is_nearly = share >= NEARLY and usual is not None and usual <= VARIED
    if not (is_constant or is_nearly):
        return
    whose = " ".join(filter(None, (f"arm '{answers.arm}'", answers.group, f"seed {answers.seed}")))
    how = "every answer is" if share == 1 else f"{share:.1%} of the answers are"
    majority = "" if usual is None else f"; always the most frequent label would be right {usual:.1%} of the time"
    yield Finding(
        CHECK,
        f"{whose}: {how} '{answer}'{majority}",
        places=(whose,),
        data={"answer": answer, "share": share, "majority": usual},
    )
