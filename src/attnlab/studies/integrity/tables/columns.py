"""Which column of a table is what: given by `--map`, recognised by its name, or by its content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.errors import RequestError, closest

from .arm_column import choose_arm, find_arm, has_run_rows, list_repeated_texts, names_runs, put_repeated_first
from .average_columns import find_averages
from .column_names import (
    BUDGETS,
    ERRORS,
    NAMES,
    RUN_NAMES,
    SDS,
    drop_aggregates,
    find_columns_for,
    is_aggregate,
    is_cost,
    is_setting,
    names_task,
)
from .figure import BOUNDS, is_empty, parse_number
from .mapping import NO_NAME, PER_RUN
from .metrics import read_direction, recognise_metric, remove_direction, split_words
from .rows import SECTION, TextTable
from .spread_columns import find_kind, find_spreads

NO_GROUPS = "none"
"""What `--map group=` takes for a table without groups."""
MIN_EXAMPLES = 10
"""A column such as `n` with smaller numbers counts something else, such as seeds."""
MARKS = frozenset({"true", "yes", "baseline", "reference"})
"""What a column says of the baseline that it says of no other arm."""


@dataclass(frozen=True)
class ColumnRoles:
    """The column of each part, the columns with values, groups and budgets, and those that are not used.

    spreads: the column with the spread of each column of means. errors: columns of standard errors and ranges.
    averages: columns that are means of others. lone_spreads: unused columns of spreads that belong to no single column.
    """

    parts: Mapping[str, str]
    values: tuple[str, ...]
    groups: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    spreads: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    averages: tuple[str, ...] = ()
    lone_spreads: tuple[str, ...] = ()

    @property
    def are_standard_errors(self) -> bool:
        """Whether the columns of spreads are named as standard errors."""
        return any(find_kind(name) in ERRORS for name in self.spreads.values())


def join_given_columns(rows: TextTable, given: Mapping[str, str]) -> tuple[TextTable, dict[str, str]]:
    """Add a column for each part that is given as several, such as arm=model+lr."""
    changed = dict(given)
    for part in ("arm", "seed"):
        names = _split_columns(rows, given.get(part, ""))
        if len(names) > 1:
            rows, changed[part] = rows.join_columns(names)
    return rows, changed


def _split_columns(rows: TextTable, text: str) -> list[str]:
    """Split names that are joined by +, which may also be in a name, such as `GPT-2 + ours`."""
    words, names = text.split("+"), list[str]()
    while words:
        # The longest name of a column comes first.
        joined = ["+".join(words[:number]).strip() for number in range(len(words), 0, -1)]
        name = next((name for name in joined if name and name in rows.header), joined[-1])
        words = words[len(words) - joined.index(name) :]
        names += [_check_column(rows, name)] if name else []
    return names


def find_roles(rows: TextTable, given: Mapping[str, str]) -> ColumnRoles:
    """Assign the columns: first as given, then by name, then by content."""
    parts = {part: _check_column(rows, column) for part, column in given.items() if part in PER_RUN}
    has_no_groups = given.get("group") == NO_GROUPS and NO_GROUPS not in rows.header
    groups, values = (
        [] if part == "group" and has_no_groups else _split_columns(rows, given.get(part, ""))
        for part in ("group", "value")
    )
    twice = [
        name for name in {*parts.values(), *groups, *values} if [*parts.values(), *groups, *values].count(name) > 1
    ]
    if twice:
        raise RequestError(f"--map gives the column '{twice[0]}' two parts; each column has one")
    taken = {*parts.values(), *groups, *values, *rows.scores}
    for part in PER_RUN:
        columns = [name for name in find_columns_for(rows, part) if name not in taken]
        if part in ("examples", "num_seeds"):
            columns = [name for name in columns if _are_counts(rows, name, part)]
        if (part == "num_seeds" and "seed" in parts) or f"{{{part}}}" in given.get("columns", ""):
            columns = []
        if part == "arm" and has_run_rows(rows, parts):
            columns = put_repeated_first(rows, columns)
        if part not in parts and columns:
            parts[part] = columns[0]
            taken.add(columns[0])
    left = [
        name for name in rows.header if name not in taken or (name in rows.scores and name not in (*groups, *values))
    ]
    spreads, errors, lone_spreads = find_spreads(rows, [*left, *values], "num_seeds" in parts)
    spreads = {value: spread for value, spread in spreads.items() if spread not in values}
    lone_spreads = [name for name in lone_spreads if name not in values]
    errors = [name for name in errors if name not in values]
    left = [name for name in left if name not in (*spreads.values(), *errors)]
    budgets = [name for name in left if "".join(split_words(name)) in BUDGETS]
    left = [name for name in left if name not in budgets and not is_setting(name)]
    if "arm" not in given and names_runs(rows, parts) and (arms := list_repeated_texts(rows, left)):
        # The name of a run is none of an arm if each row has its own, and a column of text tells the arms.
        parts["arm"] = choose_arm(rows, arms)
        left = [name for name in left if name != parts["arm"]]
    if not {"arm", "prediction"} & {*parts} and "{arm}" not in given.get("columns", "") and not rows.scores:
        arm = find_arm(rows, [name for name in left if name not in (*groups, *values)], parts, values)
        parts |= {} if arm is None else {"arm": arm}
        left = [name for name in left if name != arm]
    if not groups and not has_no_groups:
        groups = [
            name for name in left
            if _is_group(rows, name) and not _marks_one_arm(rows, name, parts) and name not in (*values, *rows.scores)
            and not _sorts_arms(rows, name, parts)
        ]  # fmt: skip
        named = [name for name in groups if _names_metrics(rows, name)]
        others = [name for name in left if name not in groups and rows.is_numeric(name)]
        if len(named) == 1 and "metric" not in parts and not any(map(recognise_metric, others)):
            parts["metric"] = named[0]
            groups = [name for name in groups if name != named[0]]
            left = [name for name in left if name != named[0]]
    # In a table of predictions each row is an example, so other numbers are not scores of runs.
    averages: list[str] = []
    if not values and "prediction" not in parts:
        numeric = [name for name in left if name and name not in groups and rows.is_numeric(name)]
        if "arm" in parts and not all(map(is_cost, numeric)):
            # Where columns are arms, a name such as `compressed memory` is one of a mechanism.
            left = [name for name in left if name not in numeric or not is_cost(name)]
            numeric = [name for name in numeric if name in left]
        averages = find_averages(rows, numeric) if "columns" not in given else []
        scores = [name for name in rows.scores if name in left and rows.is_numeric(name)]
        values = scores or _find_values(rows, [name for name in left if name not in (*groups, *averages)], parts)
        means = [name for name in spreads if name in numeric and is_aggregate(name)] if "metric" in parts else []
        # Rows of `metric, mean, sd` have costs, intervals and differences in further columns.
        values = means or _drop_lone_spread(drop_aggregates(values, averages))
        values = [name for name in values if name not in lone_spreads] or values
    spreads = {value: spread for value, spread in spreads.items() if value in values and rows.is_numeric(spread)}
    if not spreads and len(values) == 1:
        spreads = _find_unnamed_spread(rows, values[0], left)
    used = {*parts.values(), *budgets, *groups, *values, *spreads.values(), *errors}
    lone_spreads = [name for name in lone_spreads if name not in used]
    ignored = tuple(name for name in rows.header if name not in used)
    return ColumnRoles(
        parts, tuple(values), tuple(groups), tuple(budgets), ignored, spreads, tuple(errors), tuple(averages),
        tuple(lone_spreads),
    )  # fmt: skip


def _drop_lone_spread(names: Sequence[str]) -> list[str]:
    """Return the names without a column named just `std` or the like beside a single score, whose spread it is."""
    others = [name for name in names if "".join(split_words(name)) not in SDS]
    return others if len(others) == 1 else list(names)


def _check_column(rows: TextTable, column: str) -> str:
    if column in rows.header:
        return column
    if column == NO_NAME and "" in rows.header:
        return ""
    if column in rows.changed:
        raise RequestError(f"'{column}' of '{rows.name}' {rows.changed[column]}")
    known = ", ".join(name or NO_NAME for name in rows.header[:8])
    raise RequestError(
        f"'{rows.name}' has no column '{column}'{closest(column, rows.header) or '.'} There are: {known}"
    )


def _are_counts(rows: TextTable, name: str, part: str) -> bool:
    """Tell whether a column holds numbers of examples, or of seeds, which are fewer."""
    numbers = [parse_number(text) for text in rows.column(name) if not is_empty(text)]
    is_many = part == "examples"
    return bool(numbers) and all(
        n is not None and n == int(n) and (n >= MIN_EXAMPLES if is_many else 1 <= n <= 1000) for n in numbers
    )


def _find_unnamed_spread(rows: TextTable, value: str, left: Sequence[str]) -> dict[str, str]:
    """Return the column named just `std` or the like as the spread of the only column of values."""
    names = [name for name in left if "".join(split_words(name)) in SDS and name != value and rows.is_numeric(name)]
    return {value: names[0]} if len(names) == 1 else {}


def _is_group(rows: TextTable, name: str) -> bool:
    """Recognise a group by its name, or as text that several rows share."""
    if " ".join(split_words(name)) in NAMES["group"]:
        return True
    if "".join(split_words(name)) in RUN_NAMES:
        return False
    texts = rows.column(name)
    if all(is_empty(text) or BOUNDS.fullmatch(text.strip()) for text in texts):
        return False
    return bool(name) and not rows.is_numeric(name) and 2 * len(set(texts)) <= len(texts) and any(texts)


def _names_metrics(rows: TextTable, name: str) -> bool:
    """Tell whether some texts of a column have a metric, or an arrow, as `WikiText (ppl ↓)` has."""
    return any(read_direction(text) is not None or _names_task_with_metric(text) for text in set(rows.column(name)))


def _marks_one_arm(rows: TextTable, name: str, parts: Mapping[str, str]) -> bool:
    """Tell whether a column is empty, or says that it is the baseline, in all rows of one arm and in no others.

    A verdict, or whether an arm is the baseline, would be a group in which that arm is alone.
    """
    if "arm" not in parts:
        return False
    arms: dict[str, set[str]] = {}
    for _, row in rows.rows:
        arms.setdefault(row[parts["arm"]], set()).add(row[name].strip().lower())
    alone = [
        texts for arm, texts in arms.items()
        if len(texts) == 1 and not any(texts & others for other, others in arms.items() if other != arm)
    ]  # fmt: skip
    return any(is_empty(text) or text in MARKS for texts in alone for text in texts)


def _sorts_arms(rows: TextTable, name: str, parts: Mapping[str, str]) -> bool:
    """Tell whether a column sorts the arms, such as into `Baselines` and `Ours`, or says one thing of each: no arm has
    two of its texts. A column that is named as a group is one, unless it is made of sections."""
    is_named = " ".join(split_words(name)) in NAMES["group"]
    if "arm" not in parts or (is_named and name != SECTION):
        return False
    sections: dict[str, set[str]] = {}
    for _, row in rows.rows:
        sections.setdefault(row[parts["arm"]], set()).add(row[name])
    return all(len(names) == 1 for names in sections.values())


def _find_values(rows: TextTable, left: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    """Return the columns of scores: one named `value`, else known metrics, else every named column of numbers.

    A name with an arrow is that of a metric. Where a name has a task with its metric, as `CoLA (Mcc)`, or is that of a
    usual task, columns without a metric are tasks too.
    """
    named = [name for name in find_columns_for(rows, "value") if name in left]
    if named and ("metric" in parts or (len(named) == 1 and not any(map(recognise_metric, left)))):
        return named[:1]
    numeric = [name for name in left if name and rows.is_numeric(name)]
    # A table made for readers has no columns besides scores, and often names them by their dataset.
    metrics = [name for name in numeric if recognise_metric(name) or read_direction(name) is not None]
    if rows.is_for_readers or not metrics:
        return numeric
    tasks = [name for name in numeric if name not in metrics and not is_cost(name)]
    has_tasks = any(map(names_task, tasks)) or any(map(_names_task_with_metric, metrics))
    return [name for name in numeric if name in metrics or name in tasks] if has_tasks else metrics


def _names_task_with_metric(name: str) -> bool:
    """Tell whether a name has a task before the metric in brackets, as `CoLA (Mcc)`."""
    task, bracket, metric = remove_direction(name).partition("(")
    return bool(bracket and split_words(task) and recognise_metric(metric)) and not recognise_metric(task)
