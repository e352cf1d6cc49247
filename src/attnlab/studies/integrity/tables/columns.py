"""Which column of a table is what: given by `--map`, recognised by its name, or by a pattern such as `base_4l_em_9`."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from attnlab.errors import RequestError, closest

from .metrics import recognise_metric, split_words
from .rows import NOTHING, CsvRows, parse_number

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
MIN_EXAMPLES = 10
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

IN_PATTERN = ("arm", "group", "metric", "seed")
BASELINES = ("baseline", "base", "control", "vanilla", "standard", "reference", "default", "softmax")
SEED = re.compile(r"(seed|run|trial|rep|s|r)?\d+", re.IGNORECASE)
NAMED_SEED = re.compile(r"(seed|run|trial|rep)\d+", re.IGNORECASE)
BETWEEN = re.compile(r"([^A-Za-z0-9]+)")


@dataclass(frozen=True)
class ColumnRoles:
    """The column of each part, the columns with values, groups and budgets, and those that are not used."""

    parts: Mapping[str, str]
    values: tuple[str, ...]
    groups: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnPattern:
    """The pattern of column names, such as `{arm}_{group}_{metric}_{seed}`, and the parts of each name."""

    text: str
    meanings: Mapping[str, Mapping[str, str]]


def read_map(text: str | None) -> dict[str, str]:
    """Read `arm=model,seed=run,…`; `columns={arm}_{seed}` gives the pattern of the column names."""
    columns: dict[str, str] = {}
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
        columns[part] = column
    return columns


def find_roles(rows: CsvRows, given: Mapping[str, str]) -> ColumnRoles:
    """Assign the columns: first as given, then by name, then by content."""
    parts = {part: _check_column(rows, column) for part, column in given.items() if part in PER_RUN}
    groups, values = (
        [_check_column(rows, column) for column in given.get(part, "").split("+") if column]
        for part in ("group", "value")
    )
    taken = {*parts.values(), *groups, *values}
    for part in PER_RUN:
        column = next((name for name in _find_named(rows, part) if name not in taken), None)
        if part not in parts and column is not None:
            parts[part] = column
            taken.add(column)
    if "examples" in parts and "examples" not in given and not _are_counts(rows, parts["examples"]):
        del parts["examples"]
    left = [name for name in rows.header if name not in taken]
    budgets = [name for name in left if "".join(split_words(name)) in BUDGETS and not values]
    left = [name for name in left if name not in budgets and "".join(split_words(name)) not in SETTINGS]
    groups = groups or [name for name in left if _is_group(rows, name)]
    # In a table of predictions each row is an example, so other numbers are not scores of runs.
    if not values and "prediction" not in parts:
        values = _find_values(rows, [name for name in left if name not in groups], parts)
    used = {*parts.values(), *budgets, *groups, *values}
    ignored = tuple(name for name in rows.header if name not in used)
    return ColumnRoles(parts, tuple(values), tuple(groups), tuple(budgets), ignored)


def _check_column(rows: CsvRows, column: str) -> str:
    if column in rows.header:
        return column
    known = ", ".join(name or "(no name)" for name in rows.header[:8])
    raise RequestError(
        f"'{rows.name}' has no column '{column}'{closest(column, rows.header) or '.'} There are: {known}"
    )


def _find_named(rows: CsvRows, part: str) -> list[str]:
    columns = {" ".join(split_words(name)): name for name in rows.header}
    return [columns[name] for name in NAMES[part] if name in columns]


def _are_counts(rows: CsvRows, name: str) -> bool:
    numbers = [parse_number(text) for text in rows.column(name) if text.lower() not in NOTHING]
    return bool(numbers) and all(n is not None and n == int(n) and n >= MIN_EXAMPLES for n in numbers)


def _is_group(rows: CsvRows, name: str) -> bool:
    """Recognise a group by its name, or as text that several rows share."""
    if " ".join(split_words(name)) in NAMES["group"]:
        return True
    texts = rows.column(name)
    return bool(name) and not rows.is_numeric(name) and 2 * len(set(texts)) <= len(texts) and any(texts)


def _find_values(rows: CsvRows, left: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    """Return the columns of scores: one named `value`, else known metrics, else every named column of numbers."""
    named = [name for name in _find_named(rows, "value") if name in left]
    if named and ("metric" in parts or (len(named) == 1 and not any(map(recognise_metric, left)))):
        return named[:1]
    numeric = [name for name in left if name and rows.is_numeric(name)]
    return [name for name in numeric if recognise_metric(name)] or numeric


def read_pattern(text: str, names: Sequence[str]) -> ColumnPattern:
    """Read names by a given pattern; columns that do not fit are not used."""
    parts = re.findall(r"\{(\w+)\}", text)
    if not parts or len(set(parts)) < len(parts) or not set(parts) <= set(IN_PATTERN):
        raise RequestError(
            f"columns={text}: a pattern consists of {{arm}}, {{group}}, {{metric}} and {{seed}}, each at most once, "
            "such as {arm}_{group}_{metric}_{seed}"
        )
    literal = re.split(r"\{\w+\}", text)
    expression = re.escape(literal[0])
    for part, after in zip(parts, literal[1:], strict=True):
        # A group may contain separators, such as the size 4l_256.
        expression += f"(?P<{part}>{'.+' if part == 'group' else '[^_/:. ]+?|.+?'})" + re.escape(after)
    fitting = {name: match.groupdict() for name in names if (match := re.fullmatch(expression, name))}
    if not fitting:
        raise RequestError(f"columns={text} fits no column; the columns are {', '.join(names[:8])}")
    return ColumnPattern(text, fitting)


def guess_pattern(names: Sequence[str], wanted: Sequence[str]) -> ColumnPattern | None:
    """Find the pattern of most names; None if they have none, or none of the wanted parts."""
    words = {name: BETWEEN.split(name)[::2] for name in names}
    # Some columns, such as wall_time, do not follow the pattern of the others.
    length, count = Counter(len(split) for split in words.values()).most_common(1)[0] if words else (0, 0)
    if count < 2 or 2 * count <= len(names):
        return None
    words = {name: split for name, split in words.items() if len(split) == length}
    roles = _assign_parts(list(zip(*words.values(), strict=True)), wanted)
    if "arm" in wanted and "arm" not in roles:
        return None
    meanings = {
        name: {part: "_".join(compress(split, [role == part for role in roles])) for part in roles}
        for name, split in words.items()
    }
    between = BETWEEN.split(next(iter(words)))[1::2]
    text = "".join(f"{{{part}}}{sign}" for part, sign in zip(roles, [*between, ""], strict=True))
    return ColumnPattern(re.sub(r"\{group\}([^{]+\{group\})+", "{group}", text), meanings)


def _assign_parts(columns: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[str]:
    """Assign a part to each position: seeds are numbers, metrics have known names, the first of the rest is the arm."""
    roles = ["group"] * len(columns)
    varying = [place for place, words in enumerate(columns) if len(set(words)) > 1]
    if "seed" in wanted:
        seeds = [place for place in varying if all(map(SEED.fullmatch, columns[place]))]
        named = [place for place in seeds if all(map(NAMED_SEED.fullmatch, columns[place]))]
        if seeds:
            roles[(named or seeds)[-1]] = "seed"
    if "metric" in wanted:
        metrics = [place for place, words in enumerate(columns) if all(map(recognise_metric, words))]
        metrics = [place for place in metrics if roles[place] == "group"]
        if metrics:
            roles[metrics[-1]] = "metric"
    if "arm" in wanted:
        left = [place for place in varying if roles[place] == "group"]
        known = [place for place in left if any(word.lower() in BASELINES for word in columns[place])]
        if left:
            roles[(known or left)[0]] = "arm"
    return roles
