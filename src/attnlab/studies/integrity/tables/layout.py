"""How a table is laid out: which columns are what, and where arms, seeds and metrics are; in words, and as `--map`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from attnlab.errors import RequestError, closest

from .caption import find_metric
from .column_names import OURS, drop_aggregates, is_aggregate, is_cost, is_p_value, is_setting
from .columns import ColumnRoles, find_roles
from .mapping import NO_NAME, quote_map
from .metrics import KNOWN, are_same_metric, higher_is_better, read_direction, recognise_metric, split_words
from .patterns import (
    MEANS,
    ColumnPattern,
    find_mean_suffix,
    find_seed_columns,
    guess_pattern_of_means,
    read_pattern,
)
from .rows import TextTable, list_columns
from .table import Run

UNNAMED = "value"
GENERAL = ("", "value", "score", "result")
"""Names of columns of scores that say nothing of them."""


@dataclass(frozen=True)
class TableLayout:
    """How a file is read: the roles of its columns, the pattern of the names of value columns, and the metric.

    metric: the metric of columns whose names have none. source: what names that metric, in words. given: the parts of
    --map. unused_metric: what --metric names, if the table has only other metrics.
    """

    rows: TextTable
    roles: ColumnRoles
    pattern: ColumnPattern | None
    metric: str = UNNAMED
    source: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    unused_metric: str = ""

    @property
    def has_seeds(self) -> bool:
        """Whether the table names its seeds, in a column or in the names of columns."""
        return "seed" in self.roles.parts or (self.pattern is not None and "{seed}" in self.pattern.text)

    @property
    def aggregates(self) -> list[str]:
        """Columns that are means or spreads of others, and not compared."""
        return [name for name in self.roles.ignored if is_aggregate(name) or name in self.roles.averages]

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns of numbers beside columns of arms that are not read as scores."""
        are_arms = self.pattern is not None and "{arm}" in self.pattern.text
        return tuple(name for name in self.roles.ignored if name and are_arms and self.rows.is_numeric(name))

    def name_metric(self, column: str) -> str:
        """Return the metric of a column of scores, from its name without the word for a mean."""
        is_arm = self.pattern is not None and "{arm}" in self.pattern.text
        if self.pattern is not None and (is_arm or not recognise_metric(column)):
            return self.metric
        kept = [word for word in column.replace("_", " ").split() if word.lower() not in MEANS]
        is_mean = kept != column.replace("_", " ").split()
        name = ("_" if "_" in column else " ").join(kept) if is_mean else column
        is_unnamed = not name or (" ".join(split_words(name)) in GENERAL and self.metric != UNNAMED)
        return self.metric if is_unnamed else name

    def describe(self, is_metric_used: bool = False) -> Iterator[str]:
        """Say how the file was read. is_metric_used: whether scores have the metric that --metric names."""
        rows, roles, pattern = self.rows, self.roles, self.pattern
        if rows.form:
            yield rows.form
        in_names = "" if pattern is None else pattern.text
        if pattern is not None and not pattern.are_tasks and in_names.replace("{seed}", "").count("{"):
            yield f"columns {in_names}"
        if "{arm}" in in_names:
            yield "arms in columns"
        elif "arm" in roles.parts:
            column = roles.parts["arm"]
            yield f"arms in rows ('{column}')" if column else "arms in rows (the column without a name)"
        if "{seed}" in in_names and pattern is not None:
            names = list(pattern.meanings)
            yield f"seeds in columns {names[0]}…{names[-1]}"
        elif "seed" in roles.parts:
            yield f"seeds in rows ('{roles.parts['seed']}')"
        elif "prediction" not in roles.parts and "num_seeds" not in roles.parts:
            yield "no seeds named"
        if pattern is not None and pattern.are_tasks:
            names = list(pattern.meanings)
            columns = (
                "one dataset or task in each of the columns" if len(names) > 1 else "the dataset or task in column"
            )
            yield f"{columns} {list_columns(names)}"
        if self.source:
            hint = "" if recognise_metric(self.metric) else closest(self.metric, KNOWN)
            yield f"metric {self.metric} (from {self.source}{f'; it is not a known name{hint}' if hint else ''})"
        elif self._lacks_metric():
            yield "metric not named (--metric NAME, such as accuracy)"
        if self.unused_metric and not is_metric_used:
            yield f"--metric {self.unused_metric} not used, since the table names its metrics"
        yield from self._describe_columns()
        yield from rows.remarks

    def _lacks_metric(self) -> bool:
        """Tell whether nothing names the metric of some column of scores."""
        if "metric" in self.roles.parts or (self.pattern is not None and self.pattern.metrics):
            return False
        return any(self.name_metric(name) == UNNAMED for name in self.roles.values)

    def _describe_columns(self) -> Iterator[str]:
        in_names = "" if self.pattern is None else self.pattern.text
        for part, column in self.roles.parts.items():
            if part not in ("arm", "seed"):
                name = {"examples": "evaluation examples", "num_seeds": "number of seeds"}.get(part, part)
                yield f"{name} from '{column}'"
        lone_spreads = [name for name in self.roles.lone_spreads if name not in self.aggregates]
        left = [name for name in self.roles.ignored if name not in (*self.aggregates, *lone_spreads)]
        p_values = [name for name in left if is_p_value(name)]
        # Settings such as `params` are costs too, and never scores.
        costs = [name for name in left if "{arm}" not in in_names and is_cost(name) and self.rows.is_numeric(name)]
        costs = [name for name in costs if not is_setting(name)]
        lists = {
            "groups from": self.roles.groups,
            "values from": self.roles.values if self.pattern is None else (),
            f"{'standard errors' if self.roles.are_standard_errors else 'SDs'} from": tuple(
                self.roles.spreads.values()
            ),
            "budgets from": self.roles.budgets,
            "not metrics:": self.roles.errors,
            "not compared, as means or spreads of others:": self.aggregates,
            "not used, as spreads of no single column (name them as in acc and acc_std):": lone_spreads,
            "not used, as p-values:": p_values,
            "not used, as costs:": costs,
            "not used:": [name or NO_NAME for name in left if name not in (*p_values, *costs)],
        }
        for words, columns in lists.items():
            if columns:
                yield f"{words} {list_columns(columns)}"

    def write_map(self) -> str:
        """Return the `--map` that reads the table as it was read; to change the reading, change a part of it."""
        parts = [f"{part}={column or NO_NAME}" for part, column in self.roles.parts.items()]
        if self.roles.groups:
            parts.append(f"group={'+'.join(self.roles.groups)}")
        if self.pattern is not None:
            parts.append(f"columns={self.pattern.text}")
        is_one_group = self.pattern is not None and self.pattern.are_tasks and len(self.roles.values) == 1
        if self.roles.values and (self.pattern is None or "value" in self.given or is_one_group):
            parts.append(f"value={'+'.join(self.roles.values)}")
        if "table" in self.given:
            parts.append(f"table={self.given['table']}")
        return ",".join(parts)

    def runs(self) -> Iterator[tuple[Run, str, Mapping[str, str]]]:
        """Yield each row with its run and line; the run is empty if it is in the names of the value columns."""
        for line, row in self.rows.rows:
            group = ", ".join(row[name] for name in self.roles.groups)
            yield (self.part("arm", row), group, self.part("seed", row)), line, row

    def part(self, name: str, row: Mapping[str, str], default: str = "") -> str:
        """Return one part of a row, such as its arm."""
        return row[self.roles.parts[name]] if name in self.roles.parts else default


def find_layout(rows: TextTable, given: Mapping[str, str], metric: str | None = None) -> TableLayout:
    """Find how a table is laid out. given: the parts of --map. metric: the name of the metric, if the user gives it."""
    roles = find_roles(rows, given)
    named, source = (metric, "--metric") if metric else find_metric(rows.name, rows.caption)
    pattern = _find_pattern(rows, roles, given)
    if pattern is None and named and _are_groups(roles, given, named):
        suffix = find_mean_suffix(roles.values)
        meanings = {name: {"group": name.removesuffix(suffix)} for name in roles.values}
        pattern = ColumnPattern(f"{{group}}{suffix}", meanings)
    is_given = "{metric}" in given.get("columns", "")
    if pattern is not None and pattern.metrics and named and not is_given:
        # Names of columns that are no metrics are tasks of the one that is named.
        pattern = pattern if any(map(recognise_metric, pattern.metrics)) else pattern.read_metrics_as_tasks()
    if pattern is not None:
        used = {*roles.parts.values(), *roles.groups, *roles.budgets, *roles.errors, *pattern.meanings}
        spreads = {value: spread for value, spread in roles.spreads.items() if value in pattern.meanings}
        others = [*roles.values, *roles.ignored, *roles.spreads.values()]
        ignored = tuple(dict.fromkeys(name for name in others if name not in (*used, *spreads.values())))
        roles = replace(roles, values=tuple(pattern.meanings), ignored=ignored, spreads=spreads)
    layout = TableLayout(rows, roles, pattern, named or UNNAMED, source, given)
    is_used = any(layout.name_metric(name) == named for name in roles.values) and "metric" not in roles.parts
    has_metrics = pattern is not None and "{metric}" in pattern.text
    if is_used and not has_metrics:
        return layout
    in_rows = rows.column(roles.parts["metric"]) if "metric" in roles.parts else []
    in_names = [part["metric"] for part in pattern.meanings.values() if "metric" in part] if pattern is not None else []
    metrics = in_rows or in_names or [layout.name_metric(name) for name in roles.values]
    is_known = not metrics or any(are_same_metric(metric or "", name) for name in metrics)
    return replace(layout, source="", unused_metric="" if is_known else metric or "")


def _are_groups(roles: ColumnRoles, given: Mapping[str, str], metric: str) -> bool:
    """Tell whether columns of scores are datasets of one metric that is named elsewhere.

    No name of theirs has a metric, nor states another direction than the metric's.
    """
    stated = {read_direction(name) for name in roles.values} - {None}
    is_known = bool(recognise_metric(metric)) or read_direction(metric) is not None
    if len(stated) > 1 or (is_known and stated - {higher_is_better(metric)}):
        return False
    if "metric" in roles.parts or not roles.values or any(map(recognise_metric, roles.values)):
        return False
    if any(are_same_metric(name, metric) for name in roles.values):
        return False
    if len(roles.values) == 1:
        return not _is_general(roles.values[0])
    return "arm" in roles.parts and "value" not in given


def _is_general(name: str) -> bool:
    """Tell whether the name of a column names neither a metric nor a dataset, such as `value` or `mean`."""
    return is_aggregate(name) or " ".join(word for word in split_words(name) if word not in MEANS) in GENERAL


def _find_pattern(rows: TextTable, roles: ColumnRoles, given: Mapping[str, str]) -> ColumnPattern | None:
    """Find the pattern of the columns that hold scores; None if their names are those of metrics."""
    names = _list_score_columns(rows, roles, given)
    if "columns" in given:
        return read_pattern(given["columns"], names)
    if "prediction" in roles.parts or rows.scores or "value" in given:
        return None
    if "seed" not in roles.parts and (pattern := find_seed_columns(names)) and "arm" in roles.parts:
        return pattern
    if "arm" in roles.parts or len(names) < 2:
        return None
    # Means with SDs are over seeds: a number in their names is not one.
    parts = ("arm", "metric") if roles.spreads else ("arm", "metric", "seed")
    wanted = [part for part in parts if part not in roles.parts]
    form, pattern = guess_pattern_of_means(names, wanted)
    metrics = [name for name in names if recognise_metric(name)]
    if pattern is not None and ("{metric}" in pattern.text or not metrics):
        return pattern
    # Columns that are no metrics, beside a column of seeds or groups, or one named `ours`: each is an arm.
    has_ours = any(OURS & {*split_words(name)} for name in names)
    is_beside = "seed" in roles.parts or bool(roles.groups) or form is not None or has_ours
    if is_beside and not metrics and "{seed}" not in (form or ""):
        return read_pattern(f"{{arm}}{find_mean_suffix(names)}", names)
    if form is not None:
        raise RequestError(_ask_for_pattern(rows, form, names))
    return None


def _list_score_columns(rows: TextTable, roles: ColumnRoles, given: Mapping[str, str]) -> list[str]:
    """Return the columns that a pattern is about: the given ones, or all numbers that are not known to be others."""
    if "value" in given:
        return list(roles.values)
    taken = {*roles.parts.values(), *roles.groups, *roles.budgets, *roles.errors, *roles.spreads.values()}
    numeric = [name for name in rows.header if name and rows.is_numeric(name) and name not in taken]
    numeric = [name for name in numeric if name not in roles.lone_spreads] or numeric
    names = drop_aggregates([name for name in numeric if not is_setting(name)], roles.averages)
    return names or numeric or [name for name in rows.header if name not in taken]


def _ask_for_pattern(rows: TextTable, form: str, names: Sequence[str]) -> str:
    """Ask how columns are meant of which most, but not all, have a common form."""
    fitting = read_pattern(form, names).meanings
    others = [name for name in names if name not in fitting] or [name for name in names if recognise_metric(name)]
    kept = [name for name in fitting if name not in others]
    are_not = "is not" if len(others) == 1 else "are not"
    return (
        f"how are the columns of '{rows.name}' meant: {list_columns(kept, 3)} are of the form {form}, and "
        f"{list_columns(others, 3)} {are_not}? Give {quote_map('columns={arm}')} if each column is an arm, or "
        f"name the columns of scores: {quote_map(f'columns={form},value=' + '+'.join(kept))}"
    )
