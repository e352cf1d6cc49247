"""Which column of a table is what: given by `--map`, or recognised by the usual names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.errors import RequestError, closest

from .metrics import kind_of, words_of
from .rows import NOTHING, Rows, as_number

COUNTS = ("n", "num", "number of", "count")
NAMES: Mapping[str, Sequence[str]] = {
    "arm": ("arm", "method", "variant", "mechanism", "system", "attention", "approach", "algorithm", "model", "config"),
    "seed": ("seed", "random seed", "run", "run id", "trial", "replicate", "repeat", "fold"),
    "step": ("step", "steps", "global step", "iteration", "iterations", "iter", "update", "epoch"),
    "metric": ("metric", "measure", "metric name"),
    "value": ("value", "score", "result", "metric value"),
    "group": ("group", "size", "model size", "task", "dataset", "data", "benchmark", "split", "layers", "scale"),
    "prediction": ("prediction", "predicted", "predictions", "pred", "output"),
    "label": ("label", "labels", "gold", "target", "truth", "reference", "expected"),
    "examples": (
        *(f"{count} {what}" for what in ("examples", "test", "eval", "dev", "val", "samples") for count in COUNTS),
        *(f"{what} {size}" for what in ("test", "eval", "dev", "val") for size in ("size", "examples", "samples")),
        "examples", "support", "n",
    ),
}  # fmt: skip
"""The parts of a table, and the usual names of their columns, the least ambiguous first."""
FEWEST_EXAMPLES = 10
"""A column such as `n` with smaller numbers counts something else, such as seeds."""
BUDGETS = frozenset({
    "tokens", "epochs", "budget", "flops", "batchsize", "batch", "maxsteps", "trainsteps", "numsteps", "updates",
    "trainsize", "numtokens", "trainexamples", "ntrain", "numtrain", "trainsamples",
})  # fmt: skip
"""Names of budgets, in which arms that are compared must not differ."""
SETTINGS = frozenset({
    "lr", "learningrate", "warmup", "warmupsteps", "weightdecay", "dropout", "params", "parameters", "numparams",
    "hours", "gpuhours", "time", "walltime", "runtime", "memory", "index", "id", "idx",
})  # fmt: skip
"""Names of numbers that are neither scores nor budgets: arms may differ in learning rate and in run time."""
PER_RUN = ("arm", "seed", "step", "metric", "prediction", "label", "examples")
IN_MAP = ("arm", "seed", "step", "metric", "value", "group", "prediction", "label", "examples", "columns")


@dataclass(frozen=True)
class Roles:
    """The column of each part, the columns with values, groups and budgets, and those that are not used."""

    parts: Mapping[str, str]
    values: tuple[str, ...]
    groups: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = field(default=())


def read_map(text: str | None) -> dict[str, str]:
    """Read `arm=model,seed=run,…`; `columns={arm}_{seed}` gives the pattern of the column names."""
    found: dict[str, str] = {}
    for pair in (text or "").split(","):
        if not pair.strip():
            continue
        part, sign, column = (word.strip() for word in pair.partition("="))
        if not sign or not column:
            raise RequestError(
                f"--map takes PART=COLUMN separated by commas, such as arm=model,seed=run; '{pair}' is not of that form"
            )
        if part not in IN_MAP:
            raise RequestError(f"--map has no part '{part}'{closest(part, IN_MAP) or '.'} Parts: {', '.join(IN_MAP)}")
        found[part] = column
    return found


def find_roles(rows: Rows, given: Mapping[str, str]) -> Roles:
    """Assign the columns: first as given, then by name, then by content."""
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
    if "examples" in parts and "examples" not in given and not _are_counts(rows, parts["examples"]):
        del parts["examples"]
    left = [name for name in rows.header if name not in taken]
    budgets = [name for name in left if "".join(words_of(name)) in BUDGETS and not values]
    left = [name for name in left if name not in budgets and "".join(words_of(name)) not in SETTINGS]
    groups = groups or [name for name in left if _is_group(rows, name)]
    # In a table of predictions each row is an example, so other numbers are not scores of runs.
    if not values and "prediction" not in parts:
        values = _values(rows, [name for name in left if name not in groups], parts)
    used = {*parts.values(), *budgets, *groups, *values}
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


def _are_counts(rows: Rows, name: str) -> bool:
    """Tell whether a column holds sizes of an evaluation set."""
    numbers = [as_number(text) for text in rows.column(name) if text.lower() not in NOTHING]
    return bool(numbers) and all(n is not None and n == int(n) and n >= FEWEST_EXAMPLES for n in numbers)


def _is_group(rows: Rows, name: str) -> bool:
    """Recognise a group by its name, or as text that several rows share."""
    if " ".join(words_of(name)) in NAMES["group"]:
        return True
    texts = rows.column(name)
    return bool(name) and not rows.is_numeric(name) and 2 * len(set(texts)) <= len(texts) and any(texts)


def _values(rows: Rows, left: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    """Return the columns of scores: one named `value`, else known metrics, else every named column of numbers."""
    named = [name for name in _named(rows, "value") if name in left]
    if named and ("metric" in parts or (len(named) == 1 and not _known(left))):
        return named[:1]
    numeric = [name for name in left if name and rows.is_numeric(name)]
    return _known(numeric) or numeric


def _known(names: Sequence[str]) -> list[str]:
    return [name for name in names if kind_of(name)]
