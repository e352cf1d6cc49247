"""Which column of a table is what: by `--map`, or by names that people give such columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.errors import RequestError, closest

from .metrics import kind_of, words_of
from .rows import Rows

NAMES: Mapping[str, Sequence[str]] = {
    "arm": ("arm", "method", "variant", "mechanism", "system", "attention", "approach", "algorithm", "model", "config"),
    "seed": ("seed", "random seed", "run", "run id", "trial", "replicate", "repeat", "fold"),
    "step": ("step", "steps", "global step", "iteration", "iterations", "iter", "update", "epoch"),
    "metric": ("metric", "measure", "metric name"),
    "value": ("value", "score", "result", "metric value"),
    "group": ("group", "size", "model size", "task", "dataset", "data", "benchmark", "split", "layers", "scale"),
    "prediction": ("prediction", "predicted", "predictions", "pred", "output"),
    "label": ("label", "labels", "gold", "target", "truth", "reference", "expected"),
}
"""The parts of a table, and names of their columns, the surest first."""
BUDGETS = frozenset({
    "tokens", "epochs", "budget", "flops", "batchsize", "batch", "maxsteps", "trainsteps", "numsteps", "updates",
    "trainsize", "numtokens", "trainexamples",
})  # fmt: skip
"""Names of what a run is given, which arms that are compared must have alike."""
SETTINGS = frozenset({
    "lr", "learningrate", "warmup", "warmupsteps", "weightdecay", "dropout", "params", "parameters", "numparams",
    "hours", "gpuhours", "time", "walltime", "runtime", "memory", "index", "id", "idx",
})  # fmt: skip
"""Names of numbers that are neither scores nor budgets: arms may be tuned apart, and take their time."""
PER_RUN = ("arm", "seed", "step", "metric", "prediction", "label")
IN_MAP = ("arm", "seed", "step", "metric", "value", "group", "prediction", "label", "columns")


@dataclass(frozen=True)
class Roles:
    """The column of each part, those that hold values, groups and budgets, and those nobody asks about."""

    parts: Mapping[str, str]
    values: tuple[str, ...]
    groups: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = field(default=())


def read_map(text: str | None) -> dict[str, str]:
    """Read `arm=model,seed=run,…`; `columns={arm}_{seed}` says how the names of columns are made."""
    found: dict[str, str] = {}
    for pair in (text or "").split(","):
        if not pair.strip():
            continue
        part, sign, column = (word.strip() for word in pair.partition("="))
        if not sign or not column:
            raise RequestError(
                f"--map takes PART=COLUMN with commas between, such as arm=model,seed=run; it has '{pair}'"
            )
        if part not in IN_MAP:
            raise RequestError(f"--map knows no part '{part}'{closest(part, IN_MAP) or '.'} Parts: {', '.join(IN_MAP)}")
        found[part] = column
    return found


def find_roles(rows: Rows, given: Mapping[str, str]) -> Roles:
    """Tell the columns apart: what was given first, then by name, then by what they hold."""
    parts = {part: _existing(rows, column) for part, column in given.items() if part in PER_RUN}
    taken = set(parts.values())
    groups = [_existing(rows, column) for column in given.get("group", "").split("+") if column]
    values = [_existing(rows, column) for column in given.get("value", "").split("+") if column]
    taken |= {*groups, *values}
    for part in PER_RUN:
        found = next((name for name in _named(rows, part) if name not in taken), None)
        if part not in parts and found is not None:
            parts[part] = found
            taken.add(found)
    left = [name for name in rows.header if name not in taken]
    budgets = [name for name in left if "".join(words_of(name)) in BUDGETS and not values]
    left = [name for name in left if name not in budgets and "".join(words_of(name)) not in SETTINGS]
    groups = groups or [name for name in left if _is_group(rows, name)]
    # A table of single answers has rows for examples, whose other numbers are no scores of runs.
    if not values and "prediction" not in parts:
        values = _values(rows, [name for name in left if name not in groups], parts)
    used = {*taken, *budgets, *groups, *values}
    return Roles(parts, tuple(values), tuple(groups), tuple(budgets), tuple(n for n in rows.header if n not in used))


def _existing(rows: Rows, column: str) -> str:
    if column in rows.header:
        return column
    known = ", ".join(name or "(no name)" for name in rows.header[:8])
    raise RequestError(
        f"'{rows.name}' has no column '{column}'{closest(column, rows.header) or '.'} There are: {known}"
    )


def _named(rows: Rows, part: str) -> list[str]:
    found = {" ".join(words_of(name)): name for name in rows.header}
    return [found[name] for name in NAMES[part] if name in found]


def _is_group(rows: Rows, name: str) -> bool:
    """A named group, or text that many rows share; text of its own in every row tells nothing apart."""
    if " ".join(words_of(name)) in NAMES["group"]:
        return True
    texts = rows.column(name)
    return bool(name) and not rows.is_numeric(name) and 2 * len(set(texts)) <= len(texts) and any(texts)


def _values(rows: Rows, left: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    """Columns that hold scores: the one named so, else known metrics, else all numbers that have a name."""
    named = [name for name in _named(rows, "value") if name in left]
    if named and ("metric" in parts or (len(named) == 1 and not _known(left))):
        return named[:1]
    numeric = [name for name in left if name and rows.is_numeric(name)]
    return _known(numeric) or numeric


def _known(names: Sequence[str]) -> list[str]:
    return [name for name in names if kind_of(name)]
