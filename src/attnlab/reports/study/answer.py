"""The answer to a study's question in one sentence, and the order of interest of its verdicts."""

from collections.abc import Iterable, Mapping, Sequence

from attnlab.statistics.verdict import AT_CEILING, BETTER, SAME, STILL_TRAINING, WORSE
from attnlab.studies.answers.study_folder import Record

from .cells import get_fair_comparison, is_not_comparable, write_difference
from .results import ArmRow

MAX_ARMS = 3
"""Arms about each of which the answer has a clause; of more, it has their numbers."""
MAX_NAMES = 3
CLAUSES: Mapping[str, str] = {
    BETTER: "better than {}", WORSE: "worse than {}", SAME: "not meaningfully different from {}",
    AT_CEILING: "at the ceiling, as is {}", "": "not distinguished from {}",
}  # fmt: skip
"""What is said of an arm, by the outcome of its verdict, in the order of interest."""


def write_answer(record: Record, rows: Sequence[ArmRow]) -> str:
    """Answer the question of a study in one sentence. rows: the arms that were compared, in every phase and size."""
    if not record.is_whole:
        return f"There is no answer yet: {record.num_ended} of {len(record.runs)} runs have ended."
    if not rows:
        return "The study compares nothing: it has no second arm, or no smallest difference of interest."
    arms = list(dict.fromkeys(row.arm for row in rows))
    has_several = len({(row.phase, row.size) for row in rows}) > 1
    clauses = (
        [_write_clause(record, [row for row in rows if row.arm == arm], has_several) for arm in arms]
        if len(arms) <= MAX_ARMS
        else _count_outcomes(record, rows, has_several)
    )
    return "; ".join(clauses) + "."


def rank_interest(row: ArmRow) -> tuple[bool, int, float]:
    """Return a key that sorts decided verdicts first, differences before others, the largest of them first."""
    outcome, comparison = find_outcome(row), get_fair_comparison(row)
    size = 0.0 if comparison is None else abs(comparison.difference) / comparison.question.smallest
    return _is_still_training(row), list(CLAUSES).index(outcome), -size


def _is_still_training(row: ArmRow) -> bool:
    return row.answer is not None and row.answer.verdict.startswith(STILL_TRAINING)


def find_outcome(row: ArmRow) -> str:
    """Return the outcome of a verdict: BETTER, WORSE, NO MEANINGFUL DIFFERENCE, BOTH AT CEILING, or "" if open."""
    verdict = "" if row.answer is None else row.answer.verdict.removeprefix(f"{STILL_TRAINING}, ")
    return next((outcome for outcome in CLAUSES if outcome and verdict.startswith(outcome)), "")


def _write_clause(record: Record, rows: Sequence[ArmRow], has_several: bool) -> str:
    arm, baseline = rows[0].arm, record.design.baseline
    if obstacle := next((row.answer.verdict for row in rows if row.answer and is_not_comparable(row)), ""):
        return f"{arm} is not comparable ({obstacle.partition(' (')[2].removesuffix(')')})"
    parts = []
    for outcome, words in CLAUSES.items():
        places = [_write_place(row, has_several) for row in rows if find_outcome(row) == outcome]
        if places:
            parts.append(f"{words.format(baseline)} {_join(places)}".strip())
    return f"{arm} is {_join(parts)}"


def _write_place(row: ArmRow, has_several: bool) -> str:
    comparison = get_fair_comparison(row)
    number = "" if comparison is None else f"{row.figure} {write_difference(comparison)}"
    details = ", ".join(filter(None, (number, "still training" if _is_still_training(row) else "")))
    where = f"in {row.phase}, {row.size}" if has_several else ""
    return " ".join(filter(None, (where, f"({details})" if details else "")))


def _count_outcomes(record: Record, rows: Sequence[ArmRow], has_several: bool) -> list[str]:
    fair = [row for row in rows if not is_not_comparable(row)]
    clauses = []
    for outcome, words in CLAUSES.items():
        found = [row for row in fair if find_outcome(row) == outcome]
        if found:
            names = dict.fromkeys(f"{row.arm} in {row.phase}, {row.size}" if has_several else row.arm for row in found)
            listed = f" ({', '.join(names)})" if len(names) <= MAX_NAMES else ""
            clauses.append(f"{len(found)} are {words.format(record.design.baseline)}{listed}")
    if apart := len(rows) - len(fair):
        clauses.append(f"{apart} are not comparable")
    return [f"Of {len(rows)} comparisons, {clauses[0]}", *clauses[1:]]


def _join(parts: Iterable[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
