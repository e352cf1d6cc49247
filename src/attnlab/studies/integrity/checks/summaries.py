"""Reported means and SDs, checked against the recorded values."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from attnlab.errors import RequestError

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.caption import SPREAD_NAMES
from ..tables.column_names import SDS, is_setting
from ..tables.columns import find_roles
from ..tables.figure import parse_figure, parse_number
from ..tables.formats.files import read_file
from ..tables.metrics import LIMITED, Values, count_decimals, recognise_metric, split_words, standardise_metric
from ..tables.patterns import MEANS, guess_pattern
from ..tables.reading import TableHints, read_table
from ..tables.rows import TextTable
from ..tables.table import Cell, ResultTable, Statistic, group_cells, join_words, show_step

MAX_NAMED = 12
"""Figures that were not checked and are named; the others are counted, and listed in JSON."""
SUFFIX = re.compile(rf"[^A-Za-z0-9]?({'|'.join((*MEANS, *SDS))})$", re.IGNORECASE)


SAMPLE_SD, POPULATION_SD = "SD (divided by n − 1)", "population SD (divided by n)"
STANDARD_ERROR, INTERVAL = "standard error (SD/√n)", "half of a 95 % interval"
UNITS = {"in percent, unlike the mean": 100.0, "as a fraction, unlike the mean": 0.01}
FORMS = "a summary has columns such as arm, group, metric, mean, sd; or arm, group, em_mean, em_sd; or base_em_mean, …"


@dataclass(frozen=True)
class SummaryColumn:
    """A column of means or SDs. stem: what its name has before that; is_metric: it is only the name of a metric."""

    stem: str
    is_mean: bool
    is_metric: bool = False


@dataclass(frozen=True, eq=False)
class ReportedValue:
    """One value of a summary: what it summarises, which statistic it is, its text, and the runs' values.

    rounding: half of the last digit of the runs' values, which may have been rounded after they were summarised.
    """

    title: str
    metric: str
    statistic: Statistic
    text: str
    place: str
    recorded: Values
    rounding: float = 0.0

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean, and no spread."""
        return self.statistic == "mean"

    @property
    def can_be_checked(self) -> bool:
        """Whether there are enough recorded values."""
        return len(self.recorded) >= (1 if self.is_mean else 2)

    def agrees(self, factor: float) -> bool:
        """Tell whether it is right to its last digit and that of the runs; an SD may be divided by n or n − 1."""
        value = parse_number(self.text) or 0.0
        return any(
            abs(value - expected) <= self._find_slack() + self._bound_rounding(name) * factor
            for name, expected in self.list_candidates(factor).items()
        )

    def name_match(self, factor: float) -> str:
        """Name the statistic that it is to its last digit, the first of those that it may be; empty if it is none."""
        value, candidates = parse_number(self.text) or 0.0, self.list_candidates(factor)
        return next((name for name, known in candidates.items() if abs(value - known) <= self._find_slack()), "")

    def list_candidates(self, factor: float) -> dict[str, float]:
        """Return what it may be, by name."""
        values = self.recorded * factor
        if self.is_mean:
            return {"mean": float(values.mean())}
        sample, population = float(values.std(ddof=1)), float(values.std(ddof=0))
        sds = {SAMPLE_SD: sample, POPULATION_SD: population}
        root = math.sqrt(len(values))
        errors = {STANDARD_ERROR: sample / root, f"{STANDARD_ERROR} from a population SD": population / root}
        intervals = {INTERVAL: float(stdtrit(len(values) - 1, 0.975)) * sample / root, "1.96 SE": 1.96 * sample / root}
        return {"sd": sds, "se": errors, "spread": sds | errors | intervals}[self.statistic]

    def _find_slack(self) -> float:
        """Return how far it may be from the recorded value: half of its last digit."""
        return 0.51 * 10.0 ** -count_decimals(self.text) + 1e-9 * max(1.0, abs(parse_number(self.text) or 0.0))

    def _bound_rounding(self, name: str) -> float:
        """Return by how much rounding the runs' values may change a statistic: h, or h·√(n/(n − 1)) for an SD."""
        n = len(self.recorded)
        if self.is_mean:
            return self.rounding
        of_sd = self.rounding * math.sqrt(n / (n - 1))
        return of_sd * (float(stdtrit(n - 1, 0.975)) if name == INTERVAL else 1.0)

    def describe_difference(self, factor: float) -> str:
        """Say what is reported and what is recorded, and what else it would be."""
        name = {"mean": "mean", "sd": "SD", "se": "standard error", "spread": "spread"}[self.statistic]
        known = next(iter(self.list_candidates(factor).values()))
        given = f"{self.title}: the {name} is given as {self.text} ({self.place}); the recorded values have {known:.6g}"
        if self.is_mean or self.agrees(factor):
            return given
        other = replace(self, statistic="spread").name_match(factor)
        scaled = next((unit for unit, by in UNITS.items() if replace(self, statistic="sd").name_match(by * factor)), "")
        hint = f", and {self.text} agrees with their {other or f'SD {scaled}'}"
        return f"{given}{hint if other or scaled else ''}"


def check_summaries(table: ResultTable, path: str) -> Iterator[IntegrityFinding]:
    """Compare every value of a summary file with the runs that it summarises."""
    reported = _read_summary(path, table)
    yield from _check_values(reported, path, _list_unread(read_file(path), reported))


def check_stated_summaries(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Compare means and SDs beside seeds with these seeds."""
    reported = [
        ReportedValue(one.title, one.metric, one.statistic, one.text, one.place, np.array(one.values), one.rounding)
        for one in table.stated
    ]
    if reported:
        columns = dict.fromkeys(value.place.partition(", ")[2] for value in reported)
        yield from _check_values(reported, f"the columns {', '.join(map(repr, columns))}")


def _check_values(
    reported: Sequence[ReportedValue], path: str, unread: Sequence[str] = ()
) -> Iterator[IntegrityFinding]:
    """Report which figures agree and which differ, and count and name those that were not checked.

    unread: figures of the summary that were not read as a mean or an SD of the table's values.
    """
    factors = {metric: _find_factor(reported, metric) for metric in {value.metric for value in reported}}
    wrong = [value for value in reported if value.can_be_checked and not value.agrees(factors[value.metric])]
    checked = [value for value in reported if value.can_be_checked]
    matches = {value: value.name_match(factors[value.metric]) for value in checked if not value.is_mean}
    population = [value for value, name in matches.items() if name == POPULATION_SD]
    if len(population) < sum(name == SAMPLE_SD for name in matches.values()):
        # Of seeds that were rounded later, single SDs agree with the other formula by chance.
        population = []
    parts: list[str] = []
    if population:
        agree = "SD agrees only as a population SD" if len(population) == 1 else "SDs agree only as population SDs"
        shown = list_first([value.describe_difference(factors[value.metric]) for value in population], 3)
        parts.append(
            f"{len(population)} {agree}, divided by n and not by n − 1, which is too small with few seeds: {shown}"
        )
    if checked and not wrong:
        agree = f"{len(checked)} figure agrees" if len(checked) == 1 else f"all {len(checked)} figures agree"
        sentence = f"{agree} with the recorded values, of {len(reported) + len(unread)} in {path}"
        names = dict.fromkeys(name for name in matches.values() if name)
        sentence += f". Spreads that agree to the last digit are: {', '.join(names)}" if names else ""
        parts.insert(0, sentence)
    if parts:
        places = tuple(value.place for value in population)
        data = {} if wrong else {"compared": len(checked)}
        yield IntegrityFinding(IntegrityKind.SUMMARY_AGREES, ". ".join(parts), is_fault=False, places=places, data=data)
    if wrong:
        shown = list_first([value.describe_difference(factors[value.metric]) for value in wrong], 3)
        sentence = f"{len(wrong)} of {len(checked)} figures of {path} differ from the recorded values: {shown}"
        places = tuple(value.place for value in wrong)
        yield IntegrityFinding(IntegrityKind.SUMMARY_DIFFERS, sentence, places=places)
    rescaled = sorted(metric for metric, factor in factors.items() if factor != 1)
    if rescaled:
        unit = "percent" if factors[rescaled[0]] > 1 else "fractions"
        sentence = f"{path} has {list_first(rescaled)} as {unit}, unlike the table"
        yield IntegrityFinding(IntegrityKind.SUMMARY_DIFFERS, sentence, is_fault=False)
    unmatched = [f"{value.text} ({value.place})" for value in reported if not value.can_be_checked]
    yield from _report_unchecked_figures(unmatched, unread, len(reported) + len(unread), path)


def _report_unchecked_figures(
    unmatched: Sequence[str], unread: Sequence[str], num_figures: int, path: str
) -> Iterator[IntegrityFinding]:
    unchecked = [*unmatched, *unread]
    if not unchecked:
        return
    reasons = []
    if unmatched:
        have = "has" if len(unmatched) == 1 else "have"
        shown = list_first(list(unmatched), MAX_NAMED)
        reasons.append(f"{shown} {have} no recorded values of the same arm, task and metric")
    if unread:
        are = "is no mean or SD" if len(unread) == 1 else "are no means or SDs"
        reasons.append(f"{list_first(list(unread), MAX_NAMED)} {are} over seeds of the table")
    were = "was" if len(unchecked) == 1 else "were"
    sentence = f"{len(unchecked)} of {num_figures} figures of {path} {were} not checked: {'; '.join(reasons)}"
    data = {"num_unchecked": len(unchecked), "unchecked": unchecked}
    yield IntegrityFinding(IntegrityKind.SUMMARY_DIFFERS, sentence, is_fault=False, data=data)


def _list_unread(rows: TextTable, reported: Sequence[ReportedValue]) -> list[str]:
    """Return the figures of a summary, each with its place, that were not read as a mean or an SD."""
    try:
        roles = find_roles(rows, {})
        others = {*roles.parts.values(), *roles.groups, *roles.budgets}
    except RequestError:
        others = set()
    names = [name for name in rows.header if name and name not in others and not is_setting(name)]
    read = {(value.place, value.is_mean) for value in reported}
    unread = []
    for line, row in rows.rows:
        for name in names:
            figure, place = parse_figure(row[name]), f"{line}, {name}"
            if figure is None:
                continue
            # A cell of one number is a mean or an SD; one with ± is both.
            if (place, True) not in read and (figure.spread is not None or (place, False) not in read):
                unread.append(f"{figure.text} ({place})")
            if figure.spread is not None and (place, False) not in read:
                unread.append(f"± {figure.spread:g} ({place})")
    return unread


def _find_factor(reported: Sequence[ReportedValue], metric: str) -> float:
    """Return 100 or 0.01 if a limited metric is in another unit than the table, so that its means agree only then."""
    if recognise_metric(metric) not in LIMITED:
        return 1.0
    means = [value for value in reported if value.metric == metric and value.is_mean and value.can_be_checked]
    return max((1.0, 100.0, 0.01), key=lambda factor: sum(value.agrees(factor) for value in means))


def _read_summary(path: str, table: ResultTable) -> list[ReportedValue]:
    """Read a summary: wide, with names such as base_em_mean, or long, with mean and sd, or em_mean and em_sd."""
    rows = read_file(path)
    columns = {name: column for name in rows.header if (column := _read_column(name, table.metrics))}
    others = [row[name] for _, row in rows.rows for name in rows.header if name not in columns]
    has_spreads = any((figure := parse_figure(text)) and figure.spread is not None for text in others)
    # Beside cells such as 66.1 ± 0.8, a column named Avg is not the only one of means.
    if has_spreads or all(column.is_metric for column in columns.values()):
        values = list(_read_means(path, table))
    else:
        values = list(_read_values(rows, columns, table))
    if not values:
        raise RequestError(f"no figure of '{path}' was read: its arms or columns are not those of the table; {FORMS}")
    return values


def _read_means(path: str, table: ResultTable) -> Iterator[ReportedValue]:
    """Read a table of cells such as 66.1 ± 0.8, in CSV, LaTeX or Markdown."""
    metric = table.metrics[0] if len(table.metrics) == 1 else None
    summary = read_table(path, hints=TableHints(metric=metric))
    if not any(cell.sd is not None for cell in summary.values):
        raise RequestError(f"'{path}' has no column of means or SDs, and no cells such as 82.5 ± 0.3; {FORMS}")
    # Another spread than an SD over seeds is not that of the recorded values.
    has_sds = any(word.startswith(f"means with ± {SPREAD_NAMES['sd']}") for word in summary.layout)
    names = group_cells(table.arms, _normalise)
    arms = {name: same[0] for name, same in names.items() if len(same) == 1} | {arm: arm for arm in table.arms}
    matches = _match_columns(summary, table)
    for cell in summary.values:
        arm, (group, metric) = (
            arms.get(cell.arm, arms.get(_normalise(cell.arm))),
            matches.get((cell.group, cell.metric), ("", "")),
        )
        key = arm, group, metric, table.steps[-1]
        cells = [other for other in table.values if (other.arm, other.group, other.metric, other.step) == key]
        recorded = np.array([other.number for other in cells])
        rounding = _find_rounding(cells)
        yield ReportedValue(cell.title, metric, "mean", cell.text, cell.place, recorded, rounding)
        if cell.sd is not None and has_sds:
            yield ReportedValue(cell.title, metric, "sd", f"{cell.sd:.6g}", cell.place, recorded, rounding)


def _match_columns(summary: ResultTable, table: ResultTable) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the group and metric of the table for those of a summary whose names contain them, if only one does."""
    keys, others = (list(dict.fromkeys((c.group, c.metric) for c in read.values)) for read in (table, summary))
    is_one = [len({key[part] for key in keys}) == 1 for part in (0, 1)]
    matches = {}
    for key in keys:
        words = {word for part in (0, 1) if not is_one[part] for word in _split_names(key[part])}
        fitting = [other for other in others if words <= {*_split_names(other[0]), *_split_names(other[1])}]
        if len(fitting) == 1:
            matches[fitting[0]] = key
    return matches


def _split_names(name: str) -> list[str]:
    return [standardise_metric(word) for word in split_words(name)]


def _normalise(name: str) -> str:
    return " ".join(split_words(name)) or name


def _read_column(name: str, metrics: Sequence[str]) -> SummaryColumn | None:
    """Recognise mean, em_mean, base_em_mean, or em itself, which is the mean beside an SD."""
    if name in metrics:
        return SummaryColumn(name, is_mean=True, is_metric=True)
    match = SUFFIX.search(name)
    return SummaryColumn(name[: match.start()], match[1].lower() in MEANS) if match else None


def _read_values(rows: TextTable, columns: Mapping[str, SummaryColumn], table: ResultTable) -> Iterator[ReportedValue]:
    stems = {name: column.stem for name, column in columns.items()}
    is_long = all(not stem or stem in table.metrics for stem in stems.values())
    pattern = None if is_long else guess_pattern(list(dict.fromkeys(stems.values())), ("arm", "metric"))
    if pattern is None and not is_long:
        return
    roles = find_roles(rows, {"value": "+".join(columns)} if is_long else {})
    for line, row in rows.rows:
        in_row = {part: row[column] for part, column in roles.parts.items()}
        step = parse_number(in_row["step"]) if "step" in in_row else table.steps[-1]
        for name, column in columns.items():
            if pattern is None:
                parts = {"arm": "all", "group": ", ".join(row[group] for group in roles.groups), **in_row}
                parts |= {"metric": column.stem} if column.stem else {}
            else:
                parts = {"group": "", **pattern.meanings[stems[name]]}
            metric = parts.get("metric", table.metrics[0])
            if parse_number(row[name]) is not None:
                key = parts["arm"], parts["group"], metric, step
                cells = [cell for cell in table.values if (cell.arm, cell.group, cell.metric, cell.step) == key]
                title = join_words(*key[:3], "" if step is None else f"at {show_step(step)}")
                recorded = np.array([cell.number for cell in cells])
                statistic: Statistic = "mean" if column.is_mean else "sd"
                place, rounding = f"{line}, {name}", _find_rounding(cells)
                yield ReportedValue(title, metric, statistic, row[name], place, recorded, rounding)


def _find_rounding(cells: Sequence[Cell]) -> float:
    """Return half of the last digit of recorded values."""
    return max((0.5 * 10.0 ** -count_decimals(cell.text) for cell in cells), default=0.0)
