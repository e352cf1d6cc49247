"""Reads a CSV file as a result table: long, with columns for arm and seed, or wide, with both in the column names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from attnlab.errors import RequestError, closest
from attnlab.statistics.scores import LARGEST

from .headers import BASELINES, Pattern, guess_pattern, read_pattern
from .metrics import kind_of, words_of
from .roles import SETTINGS, Roles, find_roles, read_map
from .rows import NOTHING, Rows, as_number, read_rows
from .table import Answers, Cell, ResultTable


@dataclass(frozen=True)
class Layout:
    """How a file is read: the roles of its columns, and the pattern of the names of value columns."""

    rows: Rows
    roles: Roles
    pattern: Pattern | None

    def words(self) -> Iterator[str]:
        """Say how the file was read."""
        if self.pattern is not None:
            yield f"columns {self.pattern.text}"
        for part, column in self.roles.parts.items():
            yield f"{'evaluation examples' if part == 'examples' else part} from '{column}'"
        if self.roles.groups:
            yield f"groups from {', '.join(repr(name) for name in self.roles.groups)}"
        if self.pattern is None and self.roles.values:
            yield f"values from {', '.join(repr(name) for name in self.roles.values)}"
        if self.roles.budgets:
            yield f"budgets from {', '.join(repr(name) for name in self.roles.budgets)}"
        ignored = [name or "(no name)" for name in self.roles.ignored]
        if ignored:
            yield f"not used: {', '.join(repr(name) for name in ignored)}"


def read_table(path: str, mapping: str | None = None, baseline: str | None = None) -> ResultTable:
    """Read a result table; the role of a column is guessed if `mapping` does not give it."""
    rows, given = read_rows(path), read_map(mapping)
    layout = find_layout(rows, given)
    runs = list(_runs(layout))
    cells = tuple(_cells(layout, runs))
    answers = tuple(_answers(layout, runs)) if "prediction" in layout.roles.parts else ()
    if not cells and answers:
        cells = tuple(_accuracies(answers))
    if not any(cell.value is not None for cell in cells) and not answers:
        raise RequestError(
            f"no scores were recognised in '{path}', which has the columns {', '.join(map(repr, rows.header[:8]))}. "
            "Name the columns, for example --map arm=model,seed=run,value=accuracy"
        )
    arms = list(dict.fromkeys([*(cell.arm for cell in cells), *(one.arm for one in answers)]))
    budgets = _budgets(layout, runs) if layout.pattern is None else {}
    return ResultTable(path, tuple(layout.words()), cells, find_baseline(arms, baseline), budgets, answers)


def find_layout(rows: Rows, given: Mapping[str, str]) -> Layout:
    """Find the role of every column."""
    roles = find_roles(rows, given)
    if "columns" in given:
        asked = read_pattern(given["columns"], [name for name in rows.header if name not in roles.parts.values()])
        return Layout(rows, _with_values(roles, asked), asked)
    if "arm" in roles.parts or "prediction" in roles.parts:
        return Layout(rows, roles, None)
    wanted = [part for part in ("arm", "metric", "seed") if part not in roles.parts]
    # Every remaining column of numbers may hold the values of a run.
    numeric = [name for name in rows.header if name and rows.is_numeric(name) and name not in roles.parts.values()]
    numeric = [name for name in numeric if name not in roles.budgets and "".join(words_of(name)) not in SETTINGS]
    pattern = guess_pattern(numeric, wanted)
    return Layout(rows, roles if pattern is None else _with_values(roles, pattern), pattern)


def find_baseline(arms: Sequence[str], asked: str | None) -> str:
    """Return the arm that others are compared with: the given one, one with a usual name, or the first."""
    if asked is not None:
        if asked not in arms:
            raise RequestError(
                f"no arm is named '{asked}'{closest(asked, arms) or '.'} There are: {', '.join(arms[:12])}"
            )
        return asked
    for name in BASELINES:
        found = next((arm for arm in arms if name in arm.lower()), None)
        if found is not None:
            return found
    return arms[0] if arms else ""


def _with_values(roles: Roles, pattern: Pattern) -> Roles:
    used = {*roles.parts.values(), *roles.groups, *roles.budgets, *pattern.meanings}
    every = [*roles.values, *roles.ignored]
    ignored = tuple(name for name in every if name not in used)
    return Roles(roles.parts, tuple(pattern.meanings), roles.groups, roles.budgets, ignored)


Run = tuple[str, str, str]
Numbered = tuple[int, tuple[str, ...]]


def _runs(layout: Layout) -> Iterator[tuple[Run, Numbered]]:
    """Yield each row with its arm, group and seed; empty if these are in the names of the value columns."""
    for number, row in layout.rows.rows:
        said = dict(zip(layout.rows.header, row, strict=True))
        group = ", ".join(said[name] for name in layout.roles.groups)
        parts = {part: said[column] for part, column in layout.roles.parts.items()}
        yield (parts.get("arm", ""), group, parts.get("seed", "")), (number, row)


def _cells(layout: Layout, runs: Sequence[tuple[Run, Numbered]]) -> Iterator[Cell]:
    places = {name: place for place, name in enumerate(layout.rows.header)}
    parts, counts = layout.roles.parts, dict[tuple[str, ...], int]()
    seen = dict[tuple[object, ...], int]()
    for (arm, group, seed), (number, row) in runs:
        step = _step(layout, row[places[parts["step"]]], number) if "step" in parts else None
        num_examples = _count(layout, row[places[parts["examples"]]], number) if "examples" in parts else None
        for name in layout.roles.values:
            said = dict(layout.pattern.meanings[name]) if layout.pattern is not None else {}
            metric = row[places[parts["metric"]]] if "metric" in parts else said.get("metric", _metric(layout, name))
            whose = said.get("arm", arm) or "all", " ".join(filter(None, (said.get("group"), group)))
            own = said.get("seed", seed)
            if not own:
                # Without a column of seeds, each row is the next run.
                key = (*whose, metric, str(step))
                counts[key] = counts.get(key, 0) + 1
                own = str(counts[key])
            text = row[places[name]]
            value, place = _score(layout, name, text, number), f"line {number}, {name}"
            cell = Cell(*whose, metric, own, step, value, text, place, num_examples)
            _check_once(layout, cell, seen, number)
            yield cell


def _check_once(layout: Layout, cell: Cell, seen: dict[tuple[object, ...], int], number: int) -> None:
    key = (*cell.run, cell.metric, cell.step)
    if key in seen:
        raise RequestError(
            f"lines {seen[key]} and {number} of '{layout.rows.name}' are the same run (arm '{cell.arm}', seed "
            f"'{cell.seed}'{'' if cell.step is None else f', step {cell.step:g}'}); name the column in which they "
            "differ with --map group=COLUMN, or the column of seeds with --map seed=COLUMN"
        )
    seen[key] = number


def _metric(layout: Layout, name: str) -> str:
    return name if layout.pattern is None or kind_of(name) else "value"


def _step(layout: Layout, text: str, number: int) -> float:
    value = as_number(text)
    if value is None:
        raise RequestError(f"line {number} of '{layout.rows.name}': the step must be a number, not '{text}'")
    return value


def _score(layout: Layout, name: str, text: str, number: int) -> float | None:
    value = as_number(text)
    if value is None and text.lower() not in NOTHING:
        raise RequestError(
            f"line {number} of '{layout.rows.name}': '{name}' must hold numbers, not '{text}'. If it does not hold "
            "scores, name the columns that do with --map value=COLUMN"
        )
    if value is not None and abs(value) > LARGEST:
        raise RequestError(
            f"line {number} of '{layout.rows.name}': '{name}' is {text}; values beyond {LARGEST:g} are not accepted"
        )
    return value


def _count(layout: Layout, text: str, number: int) -> int | None:
    """Read the size of an evaluation set."""
    value = as_number(text)
    if value is None and text.lower() in NOTHING:
        return None
    if value is None or value != int(value) or value < 1:
        raise RequestError(
            f"line {number} of '{layout.rows.name}': '{layout.roles.parts['examples']}' must hold a number of "
            f"evaluation examples, not '{text}'"
        )
    return int(value)


def _budgets(layout: Layout, runs: Sequence[tuple[Run, Numbered]]) -> dict[Run, dict[str, str]]:
    """Return what each run was given: budgets, and the number of evaluation examples of each metric."""
    parts, budgets = layout.roles.parts, dict[Run, dict[str, str]]()
    for run, (_, row) in runs:
        cells = dict(zip(layout.rows.header, row, strict=True))
        own = budgets.setdefault(run, {})
        own.update({name: cells[name] for name in layout.roles.budgets})
        if "examples" in parts:
            metric = f" for {cells[parts['metric']]}" if "metric" in parts else ""
            own[f"{parts['examples']}{metric}"] = cells[parts["examples"]]
    return budgets


def _answers(layout: Layout, runs: Sequence[tuple[Run, Numbered]]) -> Iterator[Answers]:
    places = {name: place for place, name in enumerate(layout.rows.header)}
    said: dict[Run, tuple[list[str], list[str]]] = {}
    for run, (_, row) in runs:
        predictions, labels = said.setdefault(run, ([], []))
        predictions.append(row[places[layout.roles.parts["prediction"]]])
        if "label" in layout.roles.parts:
            labels.append(row[places[layout.roles.parts["label"]]])
    for (arm, group, seed), (predictions, labels) in said.items():
        yield Answers(arm or "all", group, seed or "1", tuple(predictions), tuple(labels))


def _accuracies(answers: Sequence[Answers]) -> Iterator[Cell]:
    """Yield the accuracy of each run whose predictions come with labels."""
    for one in answers:
        if one.labels:
            right = sum(said == gold for said, gold in zip(one.predictions, one.labels, strict=True))
            share = right / len(one.labels)
            place = f"the predictions of arm '{one.arm}', seed '{one.seed}'"
            yield Cell(one.arm, one.group, "accuracy", one.seed, None, share, repr(share), place, len(one.labels))
