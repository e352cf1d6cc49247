"""Averages over tasks, checked against the tasks beside them.

The mean of rounded scores is within r of the rounded mean of the scores, r being half of the average's last digit plus
half of the scores'. An average of other columns, or a weighted one, agrees in few rows. So a row that disagrees is a
fault only if most rows agree, and if it is much farther off than rounding; otherwise it is a note.
"""

import statistics
from collections.abc import Iterator, Sequence

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.average_columns import measure_excess
from ..tables.metrics import count_decimals, higher_is_better
from ..tables.table import ResultTable, StatedAverage, group_cells

MIN_AGREEING = 2
"""Rows that must agree, and be half of all, so that the average is known to be over these columns."""
FAR = 4.0
"""A fault is this many times farther off than rounding: a weighted average of close scores often agrees by chance."""
MIN_SCORES = 2


def check_averages(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find averages that are not the mean of their tasks."""
    for name, averages in group_cells(table.averages, lambda average: average.name).items():
        names = max(_list_choices(averages), key=lambda chosen: _count_matching_rows(averages, chosen), default=())
        if len(names) >= MIN_SCORES:
            yield from _check(name, averages, names)


def _list_choices(averages: Sequence[StatedAverage]) -> list[tuple[str, ...]]:
    """Return the columns that an average may be over: all, those on its left, and of both those of one direction."""
    scores = {score.name: score for average in averages for score in average.scores}
    choices = []
    for names in (list(scores), [name for name, score in scores.items() if score.is_left]):
        scored = [name for name in names if higher_is_better(name)]
        choices += [tuple(chosen) for chosen in (names, scored) if len(chosen) >= MIN_SCORES]
    return list(dict.fromkeys(choices))


def _count_matching_rows(averages: Sequence[StatedAverage], names: Sequence[str]) -> int:
    return sum(measure_excess(average, names) <= 1 for average in averages)


def _check(name: str, averages: Sequence[StatedAverage], names: Sequence[str]) -> Iterator[IntegrityFinding]:
    excesses = {average.place: measure_excess(average, names) for average in averages}
    wrong = [average for average in averages if excesses[average.place] > 1]
    num_agreeing = len(averages) - len(wrong)
    is_known = num_agreeing >= max(MIN_AGREEING, len(wrong))
    faults = [average for average in wrong if is_known and excesses[average.place] > FAR]
    notes = [average for average in wrong if average not in faults]
    if faults:
        agree = "row agrees" if num_agreeing == 1 else "rows agree"
        sentence = f"{_describe(faults, names)}. The averages of {num_agreeing} other {agree} with these columns"
        yield _report(sentence, faults, is_fault=True)
    if notes and is_known:
        sentence = f"{_describe(notes, names)}. This is more than rounding, and may be another weighting of the columns"
        yield _report(sentence, notes, is_fault=False)
    elif notes:
        sentence = (
            f"'{name}' is not the mean of {', '.join(names)} in {len(wrong)} of {len(averages)} "
            f"{'row' if len(averages) == 1 else 'rows'}: {_describe(notes, names)}. It may be over other columns, or "
            "weighted"
        )
        yield _report(sentence, notes, is_fault=False)


def _describe(averages: Sequence[StatedAverage], names: Sequence[str]) -> str:
    described = []
    for average in averages:
        mean = statistics.fmean(score.value for score in average.scores if score.name in names)
        digits = max(count_decimals(score.text) for score in average.scores) + 1
        described.append(
            f"{average.title}: '{average.name}' is {average.text} ({average.place}), but the mean of "
            f"{', '.join(names)} is {mean:.{digits}f}"
        )
    return list_first(described)


def _report(sentence: str, averages: Sequence[StatedAverage], is_fault: bool) -> IntegrityFinding:
    places = tuple(average.place for average in averages)
    return IntegrityFinding(
        IntegrityKind.AVERAGE_DIFFERS, sentence, is_fault, places, {"num_averages": len(averages)}
    )  # fmt: skip
