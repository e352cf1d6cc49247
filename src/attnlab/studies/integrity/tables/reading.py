"""Reads a CSV file as a result table: long, with columns for arm and seed, or wide, with both in the column names."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from attnlab.errors import RequestError, closest
from attnlab.statistics.scores import LARGEST

from .columns import BASELINES, SETTINGS, ColumnPattern, ColumnRoles, find_roles, guess_pattern, read_map, read_pattern
from .metrics import recognise_metric, split_words
from .rows import NOTHING, CsvRows, parse_number, read_rows
from .table import Cell, ResultTable, Run, RunPredictions, group_cells, join_words


@dataclass(frozen=True)
class TableLayout:
    """How a file is read: the roles of its columns, and the pattern of the names of value columns."""

    rows: CsvRows
    roles: ColumnRoles
    pattern: ColumnPattern | None

    def describe(self) -> Iterator[str]:
        """Say how the file was read."""
        if self.pattern is not None:
            yield f"columns {self.pattern.text}"
        for part, column in self.roles.parts.items():
            yield f"{'evaluation examples' if part == 'examples' else part} from '{column}'"
        lists = {
            "groups from": self.roles.groups,
            "values from": self.roles.values if self.pattern is None else (),
            "budgets from": self.roles.budgets,
            "not used:": [name or "(no name)" for name in self.roles.ignored],
        }
        for words, columns in lists.items():
            if columns:
                yield f"{words} {', '.join(map(repr, columns))}"

    def runs(self) -> Iterator[tuple[Run, int, Mapping[str, str]]]:
        """Yield each row with its run and line; the run is empty if it is in the names of the value columns."""
        for number, row in self.rows.rows:
            group = ", ".join(row[name] for name in self.roles.groups)
            yield (self.part("arm", row), group, self.part("seed", row)), number, row

    def part(self, name: str, row: Mapping[str, str], default: str = "") -> str:
        """Return one part of a row, such as its arm."""
        return row[self.roles.parts[name]] if name in self.roles.parts else default


def read_table(path: str, mapping: str | None = None, baseline: str | None = None) -> ResultTable:
    """Read a result table; the role of a column is guessed if `mapping` does not give it."""
    rows = read_rows(path)
    layout = _find_layout(rows, read_map(mapping))
    cells = tuple(_read_cells(layout))
    predictions = tuple(_read_predictions(layout)) if "prediction" in layout.roles.parts else ()
    if not cells and predictions:
        cells = tuple(_measure_accuracies(predictions))
    if not any(cell.value is not None for cell in cells) and not predictions:
        raise RequestError(
            f"no scores were recognised in '{path}', which has the columns {', '.join(map(repr, rows.header[:8]))}. "
            "Name the columns, for example --map arm=model,seed=run,value=accuracy"
        )
    arms = list(dict.fromkeys([*(cell.arm for cell in cells), *(run.arm for run in predictions)]))
    budgets = _read_budgets(layout) if layout.pattern is None else {}
    return ResultTable(path, tuple(layout.describe()), cells, _find_baseline(arms, baseline), budgets, predictions)


def _find_layout(rows: CsvRows, given: Mapping[str, str]) -> TableLayout:
    roles = find_roles(rows, given)
    # Every remaining column of numbers may hold the values of a run.
    others = [name for name in rows.header if name not in roles.parts.values()]
    if "columns" in given:
        pattern: ColumnPattern | None = read_pattern(given["columns"], others)
    elif "arm" in roles.parts or "prediction" in roles.parts:
        pattern = None
    else:
        numeric = [name for name in others if name and rows.is_numeric(name) and name not in roles.budgets]
        wanted = [part for part in ("arm", "metric", "seed") if part not in roles.parts]
        pattern = guess_pattern([name for name in numeric if "".join(split_words(name)) not in SETTINGS], wanted)
    if pattern is not None:
        used = {*roles.parts.values(), *roles.groups, *roles.budgets, *pattern.meanings}
        ignored = tuple(name for name in (*roles.values, *roles.ignored) if name not in used)
        roles = replace(roles, values=tuple(pattern.meanings), ignored=ignored)
    return TableLayout(rows, roles, pattern)


def _find_baseline(arms: Sequence[str], asked: str | None) -> str:
    """Return the arm that others are compared with: the given one, one with a usual name, or the first."""
    if asked is not None and asked not in arms:
        raise RequestError(f"no arm is named '{asked}'{closest(asked, arms) or '.'} There are: {', '.join(arms[:12])}")
    usual = (arm for name in BASELINES for arm in arms if name in arm.lower())
    return asked if asked is not None else next(usual, arms[0] if arms else "")


def _read_cells(layout: TableLayout) -> Iterator[Cell]:
    counts, lines = Counter[tuple[str, ...]](), dict[tuple[object, ...], int]()
    for (arm, group, seed), number, row in layout.runs():
        where = f"line {number} of '{layout.rows.name}'"
        step = parse_number(layout.part("step", row))
        if step is None and "step" in layout.roles.parts:
            raise RequestError(f"{where}: the step must be a number, not '{layout.part('step', row)}'")
        num_examples = _read_count(where, layout, row) if "examples" in layout.roles.parts else None
        for name in layout.roles.values:
            parts = layout.pattern.meanings[name] if layout.pattern is not None else {}
            unnamed = name if layout.pattern is None or recognise_metric(name) else "value"
            metric = layout.part("metric", row, parts.get("metric", unnamed))
            run_arm, run_group = parts.get("arm", arm) or "all", join_words(parts.get("group", ""), group)
            run_seed = parts.get("seed", seed)
            if not run_seed:
                # Without a column of seeds, each row is the next run.
                unseeded = run_arm, run_group, metric, str(step)
                counts[unseeded] += 1
                run_seed = str(counts[unseeded])
            value, place = _read_score(where, name, row[name]), f"line {number}, {name}"
            cell = Cell(run_arm, run_group, metric, run_seed, step, value, row[name], place, num_examples)
            key = *cell.run, metric, step
            if key in lines:
                raise RequestError(
                    f"lines {lines[key]} and {number} of '{layout.rows.name}' are the same run (arm '{cell.arm}', seed "
                    f"'{cell.seed}'{'' if step is None else f', step {step:g}'}); name the column in which they differ "
                    "with --map group=COLUMN, or the column of seeds with --map seed=COLUMN"
                )
            lines[key] = number
            yield cell


def _read_score(where: str, name: str, text: str) -> float | None:
    value = parse_number(text)
    if value is None and text.lower() not in NOTHING:
        raise RequestError(
            f"{where}: '{name}' must hold numbers, not '{text}'. If it does not hold scores, name the columns that do "
            "with --map value=COLUMN"
        )
    if value is not None and abs(value) > LARGEST:
        raise RequestError(f"{where}: '{name}' is {text}; values beyond {LARGEST:g} are not accepted")
    return value


def _read_count(where: str, layout: TableLayout, row: Mapping[str, str]) -> int | None:
    text = layout.part("examples", row)
    value = parse_number(text)
    if value is None and text.lower() in NOTHING:
        return None
    if value is None or value != int(value) or value < 1:
        raise RequestError(
            f"{where}: '{layout.roles.parts['examples']}' must hold a number of evaluation examples, not '{text}'"
        )
    return int(value)


def _read_budgets(layout: TableLayout) -> dict[Run, dict[str, str]]:
    """Return what each run was given: budgets, and the number of evaluation examples of each metric."""
    budgets = dict[Run, dict[str, str]]()
    for run, _, row in layout.runs():
        budget = budgets.setdefault(run, {})
        budget.update({name: row[name] for name in layout.roles.budgets})
        if "examples" in layout.roles.parts:
            metric = f" for {layout.part('metric', row)}" if "metric" in layout.roles.parts else ""
            budget[f"{layout.roles.parts['examples']}{metric}"] = layout.part("examples", row)
    return budgets


def _read_predictions(layout: TableLayout) -> Iterator[RunPredictions]:
    for (arm, group, seed), rows in group_cells(layout.runs(), lambda row: row[0]).items():
        predictions = tuple(layout.part("prediction", row) for _, _, row in rows)
        labels = tuple(layout.part("label", row) for _, _, row in rows) if "label" in layout.roles.parts else ()
        yield RunPredictions(arm or "all", group, seed or "1", predictions, labels)


def _measure_accuracies(predictions: Sequence[RunPredictions]) -> Iterator[Cell]:
    for run in predictions:
        if run.labels:
            num_right = sum(given == gold for given, gold in zip(run.predictions, run.labels, strict=True))
            share = num_right / len(run.labels)
            place = f"the predictions of arm '{run.arm}', seed '{run.seed}'"
            yield Cell(run.arm, run.group, "accuracy", run.seed, None, share, repr(share), place, len(run.labels))
