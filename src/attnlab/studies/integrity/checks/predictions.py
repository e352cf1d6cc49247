"""Runs that give one answer to everything: predictions that are constant, or nearly so, although the labels vary."""

from collections import Counter
from collections.abc import Iterator, Mapping

from ..finding import IntegrityFinding, IntegrityKind
from ..tables.table import ResultTable, join_words

MIN_ANSWERS = 10
"""Fewer constant answers are no evidence."""
NEARLY = 0.99
VARIED = 0.95
"""Labels vary if the most frequent one has at most this share."""


def check_predictions(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Examine the answers of each run."""
    for run in table.predictions:
        counts = Counter(run.predictions)
        majority = max(Counter(run.labels).values()) / len(run.labels) if run.labels else None
        if is_one_answer(counts, majority):
            yield report_one_answer(join_words(f"arm '{run.arm}'", run.group, f"seed {run.seed}"), counts, majority)


def is_one_answer(counts: Mapping[str, int], majority: float | None) -> bool:
    """Tell whether answers are constant or nearly so. majority: the share of the most frequent label, if known."""
    num, most = sum(counts.values()), max(counts.values(), default=0)
    if num < MIN_ANSWERS:
        return False
    if majority is None:
        return most == num
    return (most == num and majority < 1) or (most / num >= NEARLY and majority <= VARIED)


def report_one_answer(title: str, counts: Mapping[str, int], majority: float | None) -> IntegrityFinding:
    """Report the answer that is nearly always given."""
    answer, count = max(counts.items(), key=lambda pair: pair[1])
    share = count / sum(counts.values())
    answers = "every answer is" if share == 1 else f"{share:.1%} of the answers are"
    sentence = f"{title}: {answers} '{answer}'"
    if majority is not None:
        sentence += f"; always predicting the most frequent label would be correct for {majority:.1%}"
    data = {"answer": answer, "share": share, "majority": majority}
    return IntegrityFinding(IntegrityKind.ONE_ANSWER, sentence, places=(title,), data=data)
