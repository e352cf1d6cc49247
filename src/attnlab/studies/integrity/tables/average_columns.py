"""Averages of other columns or rows, recognised by name, such as `GLUE Avg`, or by name and numbers together."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from attnlab.errors import RequestError

from .column_names import ERRORS, SDS, is_aggregate, split_summary
from .figure import parse_figure
from .mapping import quote_map
from .metrics import count_decimals, recognise_metric, split_words
from .patterns import MEANS
from .rows import TextTable, list_columns
from .table import AveragedScore, Cell, StatedAverage

SUITES = frozenset({"glue", "superglue", "lra", "mteb", "helm"})
"""Benchmarks that are a set of tasks, so that a mean of one is over tasks."""
MIN_OTHERS = 2


def list_columns_of_average(name: str, names: Iterable[str]) -> list[str]:
    """Return the others that an average is over by its name; empty if its name is none of an average.

    `Avg` and `GLUE Avg` are over all that are no means themselves, `SQuAD Avg` beside `SQuAD EM` and `SQuAD F1` over
    these two.
    """
    _, subject = split_summary(name)
    others = [other for other in names if not is_mean(other)]
    if not is_mean(name) or len(others) < MIN_OTHERS:
        return []
    about = [other for other in others if subject and {*subject} <= {*split_words(other)}]
    if len(about) >= MIN_OTHERS:
        return about
    is_over_all = is_aggregate(name) or SUITES.issuperset(subject)
    return others if is_over_all else []


def find_averages(rows: TextTable, names: Sequence[str]) -> list[str]:
    """Return the columns of numbers that are averages of others; refuse one that may be an average or a score."""
    averages = []
    others = [name for name in names if not is_mean(name)]
    for name in filter(is_mean, names if len(others) >= MIN_OTHERS else ()):
        over = list_columns_of_average(name, names)
        stated = [state_average(name, line, row, over or others, rows.header) for line, row in rows.rows]
        complete = [average for average in stated if average is not None]
        num_between = sum(map(_is_between, complete))
        if over and (not complete or num_between > len(complete) / 2):
            averages.append(name)
        if over or recognise_metric(name) or any(split_summary(name)[1] == split_words(other) for other in names):
            # Otherwise it is a mean of a metric, or of another column, over seeds.
            continue
        if sum(measure_excess(average, others) <= 1 for average in complete) > len(complete) / 2:
            averages.append(name)
        elif complete and num_between == len(complete):
            raise RequestError(_ask(rows, name, others))
    return averages


def list_group_averages(cells: Iterable[Cell]) -> set[str]:
    """Return the parts of groups that are averages of other groups, such as a row `GLUE Avg` below rows of tasks."""
    parts = dict.fromkeys(part for cell in cells for part in cell.group.split(", "))
    return {part for part in parts if is_mean(part) and (is_aggregate(part) or list_columns_of_average(part, parts))}


def is_mean(name: str) -> bool:
    """Tell whether a name has a word for a mean, and none for a spread."""
    words = split_words(name)
    return any(word in MEANS for word in words) and not any(word in (*SDS, *ERRORS) for word in words)


def state_average(
    name: str, line: str, row: Mapping[str, str], others: Sequence[str], header: Sequence[str], title: str = ""
) -> StatedAverage | None:
    """Return the average in one row with the scores beside it; None if one of them is missing."""
    figure, scores = parse_figure(row[name]), list[AveragedScore]()
    for column in others:
        score = parse_figure(row[column])
        if score is not None:
            is_left = header.index(column) < header.index(name)
            scores.append(AveragedScore(column, score.text, score.value, is_left))
    if figure is None or len(scores) < len(others):
        return None
    return StatedAverage(name, title, figure.text, figure.value, f"{line}, {name}", tuple(scores))


def measure_excess(average: StatedAverage, names: Sequence[str]) -> float:
    """Return how far an average is from the mean of some columns, in units of what rounding explains."""
    scores = [score for score in average.scores if score.name in names]
    mean = statistics.fmean(score.value for score in scores)
    rounding = 0.5 * 10.0 ** -count_decimals(average.text)
    rounding += statistics.fmean(0.5 * 10.0 ** -count_decimals(score.text) for score in scores)
    return abs(average.value - mean) / (1.01 * rounding + 1e-9 * max(1.0, abs(mean)))


def _is_between(average: StatedAverage) -> bool:
    """Tell whether an average is between the smallest and the largest score, as also a weighted one is."""
    values = [score.value for score in average.scores]
    return min(values) <= average.value <= max(values)


def _ask(rows: TextTable, name: str, others: Sequence[str]) -> str:
    without, joined = "value=" + "+".join(others), "value=" + "+".join([*others, name])
    return (
        f"is '{name}' of '{rows.name}' an average of {list_columns(others, 4)}, or a score of its own? Its name may "
        f"mean both, and it is not their mean. Give {quote_map(without)} if it is an average, or {quote_map(joined)} "
        "if it is a score"
    )
