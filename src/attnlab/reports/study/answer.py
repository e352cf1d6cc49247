"""The answer to a study's question in one sentence, and the order of interest of its verdicts."""

from collections.abc import Iterable, Mapping, Sequence

from attnlab.statistics.formatting import show_value
from attnlab.statistics.verdict import AT_CEILING, BETTER, SAME, STILL_TRAINING, WORSE
from attnlab.studies.answers.study_folder import Record

from .cells import get_fair_comparison, is_not_comparable, write_difference
from .results import ArmRow

MAX_ARMS = 3
"""Arms about each of which the answer has a clause; of more, it has their numbers."""
MAX_NAMES = 6
CLAUSES: Mapping[str, str] = {
    BETTER: "better than {}", WORSE: "worse than {}", SAME: "not meaningfully different from {}",
    AT_CEILING: "at the ceiling, as is {}", "": "not distinguished from {}",
}  # fmt: skip
"""What is said of an arm, by the outcome of its verdict, in the order of interest."""


def write_answer(record: Record, rows: Sequence[ArmRow], baselines: Mapping[tuple[str, str], ArmRow]) -> str:
    """Answer the question of a study in one sentence.

    rows: the arms that were compared, in every phase and size. baselines: the baseline in each of these.
    """
    if not record.is_whole:
        return f"There is no answer yet: {record.num_ended} of {len(record.runs)} runs have ended."
    if not rows:
        return "The study compares nothing: it has no second arm, or no smallest difference of interest."
    arms = list(dict.fromkeys(row.arm for row in rows))
    clauses = (
        [_write_clause([row for row in rows if row.arm == arm], baselines) for arm in arms]
        if len(arms) <= MAX_ARMS
        else _count_outcomes(rows, record.design.baseline, len(baselines) > 1)
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


def _write_clause(rows: Sequence[ArmRow], baselines: Mapping[tuple[str, str], ArmRow]) -> str:
    arm, (baseline, *_) = rows[0].arm, baselines.values()
    if obstacle := next(filter(None, map(_find_obstacle, rows)), ""):
        return f"{arm} is not comparable ({obstacle})"
    parts = []
    for outcome, words in CLAUSES.items():
        found = [row for row in rows if find_outcome(row) == outcome]
        places = [_write_place(row, baselines[row.phase, row.size], len(baselines) > 1) for row in found]
        if places:
            parts.append(f"{words.format(baseline.arm)} {_join(places)}".strip())
    return f"{arm} is {_join(parts)}"


def _find_obstacle(row: ArmRow) -> str:
    """Return why an arm is not comparable; empty if it is."""
    if row.answer is None or not is_not_comparable(row):
        return ""
    return row.answer.verdict.partition(" (")[2].removesuffix(")")


def _write_place(row: ArmRow, baseline: ArmRow, has_several: bool) -> str:
    comparison = get_fair_comparison(row)
    details = []
    if comparison is not None:
        # Both figures: the difference of two shares alone reads as a share, such as an accuracy of −0.74.
        details.append(f"{row.figure} {show_value(row.summary.mean)} against {show_value(baseline.summary.mean)}")
        details += [write_difference(comparison)] if comparison.question.scale == "log" else []
    details += ["still training"] if _is_still_training(row) else []
    where = f"in {row.phase}, {row.size}" if has_several else ""
    return " ".join(filter(None, (where, f"({', '.join(details)})" if details else "")))


def _count_outcomes(rows: Sequence[ArmRow], baseline: str, has_several: bool) -> list[str]:
    """Count the arms of each outcome, or in several phases and sizes the comparisons, and name them."""
    grouped: dict[str, list[ArmRow]] = {}
    for outcome, words in CLAUSES.items():
        for row in (row for row in rows if not is_not_comparable(row) and find_outcome(row) == outcome):
            still = " so far, still training" if _is_still_training(row) else ""
            grouped.setdefault(f"{words.format(baseline)}{still}", []).append(row)
    for row in filter(is_not_comparable, rows):
        grouped.setdefault(f"not comparable, since {_find_obstacle(row)}", []).append(row)
    clauses = [_count_arms(words, found, has_several) for words, found in grouped.items()]
    total = f"Of {len(rows)} comparisons" if has_several else f"Of {len(rows)} arms"
    return [f"{total}, {clauses[0]}", *clauses[1:]]


def _count_arms(words: str, rows: Sequence[ArmRow], has_several: bool) -> str:
    names = list(dict.fromkeys(f"{row.arm} in {row.phase}, {row.size}" if has_several else row.arm for row in rows))
    more = [f"{len(names) - MAX_NAMES + 1} more"] if len(names) > MAX_NAMES else []
    listed = "; ".join if has_several else ", ".join
    named = listed([*names[: MAX_NAMES - len(more)], *more])
    if has_several:
        return f"{len(rows)} {'finds' if len(rows) == 1 else 'find'} the arm {words} ({named})"
    if len(rows) == 1:
        return f"1 is {words} ({named})"
    # The reason is about one arm: "its audit finds a leak".
    return f"{len(rows)} are {words.replace(', since its ', ', each since its ', 1)} ({named})"


def _join(parts: Iterable[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
