"""Which column of a table is what: given by `--map`, recognised by its name, or by its content."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.errors import RequestError, closest
from attnlab.inputs import is_whole_number

from .figure import is_empty, parse_number
from .metrics import read_direction, recognise_metric, split_words
from .patterns import BASELINES, MEANS, guess_pattern
from .rows import TextTable

COUNTS = ("n", "num", "number of", "count")
NAMES: Mapping[str, Sequence[str]] = {
    "arm": (
        "arm", "method", "methods", "variant", "mechanism", "system", "attention", "approach", "algorithm", "model",
        "models", "attn", "attention type", "attn type", "mixer", "config", "group name", "name",
    ),
    "seed": ("seed", "random seed", "run", "run id", "trial", "replicate", "repeat", "fold"),
    "step": ("step", "steps", "global step", "iteration", "iterations", "iter", "update", "epoch"),
    "metric": ("metric", "measure", "metric name"),
    "value": ("value", "score", "result", "metric value"),
    "group": (
        "group", "size", "model size", "task", "dataset", "data", "benchmark", "split", "layers", "scale", "section",
    ),
    "prediction": ("prediction", "predicted", "predictions", "pred", "output"),
    "label": ("label", "labels", "gold", "target", "truth", "reference", "expected"),
    "examples": (
        *(f"{count} {what}" for what in ("examples", "test", "eval", "dev", "val", "samples") for count in COUNTS),
        *(f"{what} {size}" for what in ("test", "eval", "dev", "val") for size in ("size", "examples", "samples")),
        "examples", "support", "n",
    ),
    "num_seeds": (
        *(f"{count} {what}" for what in ("seeds", "runs", "trials") for count in COUNTS), "seeds", "runs", "n",
    ),
}  # fmt: skip
"""The parts of a table, and the usual names of their columns, the least ambiguous first."""
MIN_EXAMPLES = 10
"""A column such as `n` with smaller numbers counts something else, such as seeds."""
BUDGETS = frozenset({
    "tokens", "tokensseen", "epochs",
    "budget", "flops", "batchsize", "batch", "maxsteps", "trainsteps", "numsteps", "updates",
    "trainsize", "numtokens", "trainexamples", "ntrain", "numtrain", "trainsamples", "numfewshot", "nshot", "shots",
})  # fmt: skip
"""Names of budgets, in which arms that are compared must not differ."""
SETTINGS = frozenset({
    "lr", "learningrate", "warmup", "warmupsteps", "weightdecay", "dropout", "params", "parameters", "numparams",
    "hours", "gpuhours", "time", "walltime", "runtime", "memory", "index", "id", "idx", "rank", "date", "timestamp",
})  # fmt: skip
"""Names of numbers that are neither scores nor budgets: arms may differ in learning rate and in run time."""
IN_CONFIG = ("arm", "seed")
"""Parts whose columns may have a prefix, as in the configuration of a tracker: model.attention, params.seed."""
GENERAL = ("config", "group name", "name", "run", "n")
"""Names that say nothing of an arm or a seed behind a prefix, as in optimizer.name."""
PER_RUN = ("arm", "seed", "step", "metric", "prediction", "label", "examples", "num_seeds")
IN_MAP = (*PER_RUN[:4], "value", "group", *PER_RUN[4:], "columns", "table")
RUN_NAMES = frozenset({"name", "runname", "displayname", "runid", "id", "file", "path"})
SDS = ("std", "sd", "stdev", "stddev")
ERRORS = ("stderr", "sem", "se")
RANGES = ("min", "max", "median", "ci", "ci95", "lower", "upper", "var", "variance")
OURS = frozenset({*BASELINES, "ours", "proposed"})


@dataclass(frozen=True)
class ColumnRoles:
    """The column of each part, the columns with values, groups and budgets, and those that are not used.

    spreads: the column with the spread of each column of means. errors: columns of standard errors and ranges.
    """

    parts: Mapping[str, str]
    values: tuple[str, ...]
    groups: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    spreads: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    @property
    def are_standard_errors(self) -> bool:
        """Whether the columns of spreads are named as standard errors."""
        return any(word in ERRORS for name in self.spreads.values() for word in split_words(name))


def read_map(text: str | None) -> dict[str, str]:
    """Read `arm=model,seed=run,…`; `columns={arm}_{seed}` gives the pattern of the column names."""
    columns: dict[str, str] = {}
    # A comma inside the name of a column, such as `acc,none`, is not followed by a part and an equals sign.
    pairs = [pair for pair in re.split(r",(?=\s*\w+\s*=|\s*$)", text or "") if pair.strip()]
    if text is not None and not pairs:
        raise RequestError("--map is empty; it takes PART=COLUMN separated by commas, such as arm=model,seed=run")
    for pair in pairs:
        part, sign, column = (word.strip() for word in pair.partition("="))
        if not sign or not column:
            raise RequestError(
                f"--map takes PART=COLUMN separated by commas, such as arm=model,seed=run; '{pair}' is not of that form"
            )
        if part not in IN_MAP:
            raise RequestError(f"--map has no part '{part}'{closest(part, IN_MAP) or '.'} Parts: {', '.join(IN_MAP)}")
        if part in columns:
            raise RequestError(f"--map gives '{part}' twice; join several columns by +, such as group=size+task")
        columns[part] = column
    pattern = columns.get("columns", "")
    twice = next((part for part in columns if part != "group" and f"{{{part}}}" in pattern), None)
    if twice is not None:
        raise RequestError(f"--map gives '{twice}' twice: as a column, and in columns={pattern}")
    return columns


def quote_map(text: str) -> str:
    """Write `--map` with its text quoted where a shell needs it, so that it can be pasted."""
    return f"--map {shlex.quote(text)}"


def read_table_number(given: Mapping[str, str]) -> int | None:
    """Return the number of the table in the file, if --map gives it."""
    text = given.get("table")
    if text is not None and not is_whole_number(text):
        raise RequestError(f"--map table={text}: give the number of a table in the file, from 1")
    return None if text is None else int(text)


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
    groups, values = (_split_columns(rows, given.get(part, "")) for part in ("group", "value"))
    twice = [
        name for name in {*parts.values(), *groups, *values} if [*parts.values(), *groups, *values].count(name) > 1
    ]
    if twice:
        raise RequestError(f"--map gives the column '{twice[0]}' two parts; each column has one")
    taken = {*parts.values(), *groups, *values, *rows.scores}
    for part in PER_RUN:
        columns = [name for name in _find_columns_named(rows, part) if name not in taken]
        if part in ("examples", "num_seeds"):
            columns = [name for name in columns if _are_counts(rows, name, part)]
        if (part == "num_seeds" and "seed" in parts) or f"{{{part}}}" in given.get("columns", ""):
            columns = []
        if part == "arm" and _has_run_rows(rows, parts):
            columns = _put_repeated_first(rows, columns)
        if part not in parts and columns:
            parts[part] = columns[0]
            taken.add(columns[0])
    left = [
        name for name in rows.header if name not in taken or (name in rows.scores and name not in (*groups, *values))
    ]
    spreads, errors = _find_spreads([*left, *values], (*SDS, *ERRORS) if "num_seeds" in parts else SDS)
    spreads = {value: spread for value, spread in spreads.items() if spread not in values}
    errors = [name for name in errors if name not in values]
    left = [name for name in left if name not in (*spreads.values(), *errors)]
    budgets = [name for name in left if "".join(split_words(name)) in BUDGETS]
    left = [name for name in left if name not in budgets and not is_setting(name)]
    if "arm" not in given and _names_runs(rows, parts) and (arms := _list_repeated_texts(rows, left)):
        # The name of a run is none of an arm if each row has its own, and a column of text tells the arms.
        parts["arm"] = _choose_arm(rows, arms)
        left = [name for name in left if name != parts["arm"]]
    if not {"arm", "prediction"} & {*parts} and "{arm}" not in given.get("columns", "") and not rows.scores:
        arm = _find_arm(rows, [name for name in left if name not in (*groups, *values)], parts)
        parts |= {} if arm is None else {"arm": arm}
        left = [name for name in left if name != arm]
    groups = groups or [name for name in left if _is_group(rows, name) and name not in (*values, *rows.scores)]
    # In a table of predictions each row is an example, so other numbers are not scores of runs.
    if not values and "prediction" not in parts:
        scores = [name for name in rows.scores if name in left and rows.is_numeric(name)]
        values = scores or _find_values(rows, [name for name in left if name not in groups], parts)
        values = _drop_lone_spread(drop_aggregates(values))
    spreads = {value: spread for value, spread in spreads.items() if value in values and rows.is_numeric(spread)}
    if not spreads and len(values) == 1:
        spreads = _find_unnamed_spread(rows, values[0], left)
    used = {*parts.values(), *budgets, *groups, *values, *spreads.values(), *errors}
    ignored = tuple(name for name in rows.header if name not in used)
    return ColumnRoles(parts, tuple(values), tuple(groups), tuple(budgets), ignored, spreads, tuple(errors))


def is_aggregate(name: str) -> bool:
    """Tell whether a column holds means or spreads of other columns by its name, such as `Avg.` or `std`."""
    words = split_words(name)
    return bool(words) and all(word in (*MEANS, *SDS, *ERRORS) for word in words)


def drop_aggregates(names: Sequence[str]) -> list[str]:
    """Return the names without means and spreads of others; a single score, or `mean` beside `max`, is not one."""
    scores = [name for name in names if not is_aggregate(name)]
    return scores if len(scores) > 1 else list(names)


def _drop_lone_spread(names: Sequence[str]) -> list[str]:
    """Return the names without a column named just `std` or the like beside a single score, whose spread it is."""
    others = [name for name in names if "".join(split_words(name)) not in SDS]
    return others if len(others) == 1 else list(names)


def is_setting(name: str) -> bool:
    """Tell whether a column is a setting or a cost by its name, such as `lr` or `Params (M)`."""
    words = split_words(name)
    return "".join(words) in SETTINGS or any(word in SETTINGS for word in words[:1])


def _check_column(rows: TextTable, column: str) -> str:
    if column in rows.header:
        return column
    known = ", ".join(name or "(no name)" for name in rows.header[:8])
    raise RequestError(
        f"'{rows.name}' has no column '{column}'{closest(column, rows.header) or '.'} There are: {known}"
    )


def _find_columns_named(rows: TextTable, part: str) -> list[str]:
    columns = {" ".join(split_words(name)): name for name in rows.header}
    found = [columns[name] for name in NAMES[part] if name in columns]
    if part in IN_CONFIG:
        # A setting that is the same in all rows tells no arms apart.
        behind = {
            " ".join(split_words(re.split(r"[./]", name)[-1])): name
            for name in rows.header if re.search(r"[./]", name) and len({*rows.column(name)}) > 1
        }  # fmt: skip
        found += [behind[name] for name in NAMES[part] if name in behind and name not in GENERAL]
    return list(dict.fromkeys(found))


def _has_run_rows(rows: TextTable, parts: Mapping[str, str]) -> bool:
    """Tell whether each row is a run: the table has seeds, or comes from a tracker."""
    return "seed" in parts or bool(_find_columns_named(rows, "seed")) or rows.is_of_tracker


def _put_repeated_first(rows: TextTable, columns: Sequence[str]) -> list[str]:
    """Return the columns that may name arms; one with a value of its own in every row comes after the others."""
    return sorted(columns, key=lambda name: not 1 < len({*rows.column(name)}) < len(rows.rows))


def _names_runs(rows: TextTable, parts: Mapping[str, str]) -> bool:
    """Tell whether the column of arms holds the names of runs, each row its own."""
    arm = parts.get("arm")
    if arm is None or "".join(split_words(arm)) not in RUN_NAMES or not _has_run_rows(rows, parts):
        return False
    return len(rows.rows) > 1 and len({*rows.column(arm)}) == len(rows.rows)


def _list_repeated_texts(rows: TextTable, names: Sequence[str]) -> list[str]:
    """Return the columns of text that have several values, some of them in several rows, and are no groups by name."""
    texts = [name for name in names if not rows.is_numeric(name) and any(rows.column(name))]
    texts = [name for name in texts if " ".join(split_words(name)) not in NAMES["group"]]
    return [name for name in texts if 1 < len({*rows.column(name)}) < len(rows.rows)]


def _are_counts(rows: TextTable, name: str, part: str) -> bool:
    """Tell whether a column holds numbers of examples, or of seeds, which are fewer."""
    numbers = [parse_number(text) for text in rows.column(name) if not is_empty(text)]
    is_many = part == "examples"
    return bool(numbers) and all(
        n is not None and n == int(n) and (n >= MIN_EXAMPLES if is_many else 1 <= n <= 1000) for n in numbers
    )


def _find_spreads(names: Sequence[str], kinds_of_spread: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the column with the spread of each column of means, and other columns of standard errors and ranges.

    kinds_of_spread: words for a spread over seeds. A standard error is one beside a number of seeds, or beside a column
    that is named as a mean, such as acc_mean; otherwise it is over examples.
    """
    words = {name: split_words(name) for name in names}
    stems = {tuple(word for word in split if word not in MEANS): name for name, split in words.items()}
    spreads, errors = {}, []
    for name, split in words.items():
        kinds = [word for word in split if word in ERRORS] or [word for word in split[-1:] if word in (*SDS, *RANGES)]
        if not kinds:
            continue
        stem = tuple(word for word in split if word not in kinds)
        is_of_mean = kinds[0] in ERRORS and bool({*words[stems.get(stem, name)]} & {*MEANS})
        if (kinds[0] in kinds_of_spread or is_of_mean) and stem in stems and stems[stem] != name:
            spreads[stems[stem]] = name
        elif kinds[0] in ("stderr", "sem") or stem in stems:
            errors.append(name)
    return spreads, errors


def _find_unnamed_spread(rows: TextTable, value: str, left: Sequence[str]) -> dict[str, str]:
    """Return the column named just `std` or the like as the spread of the only column of values."""
    names = [name for name in left if "".join(split_words(name)) in SDS and name != value and rows.is_numeric(name)]
    return {value: names[0]} if len(names) == 1 else {}


def _find_arm(rows: TextTable, left: Sequence[str], parts: Mapping[str, str]) -> str | None:
    """Return the column of text that names the arms; None if the columns do. Two that could are a question."""
    numeric = [name for name in left if rows.is_numeric(name)]
    texts = [name for name in left if name not in numeric and any(rows.column(name))]
    texts = [name for name in texts if " ".join(split_words(name)) not in NAMES["group"]]
    if not texts or not numeric or any(OURS & {*split_words(name)} for name in numeric):
        return None
    pattern = guess_pattern(numeric, ("arm", "metric", "seed"))
    if pattern is not None and "{seed}" in pattern.text and "{arm}" in pattern.text:
        return None
    found = _list_repeated_texts(rows, texts) or ([] if "seed" in parts else texts)
    return _choose_arm(rows, found) if found else None


def _choose_arm(rows: TextTable, names: Sequence[str]) -> str:
    """Return the only column that may name the arms; several are a question."""
    if len(names) == 1:
        return names[0]
    shown = ", or ".join(f"'{name}' ({', '.join(dict.fromkeys(rows.column(name)))[:40]})" for name in names[:4])
    options = " or ".join(quote_map(f"arm={name}") for name in names[:4])
    raise RequestError(f"which column of '{rows.name}' names the arms: {shown}? Give {options}")


def _is_group(rows: TextTable, name: str) -> bool:
    """Recognise a group by its name, or as text that several rows share."""
    if " ".join(split_words(name)) in NAMES["group"]:
        return True
    if "".join(split_words(name)) in RUN_NAMES:
        return False
    texts = rows.column(name)
    return bool(name) and not rows.is_numeric(name) and 2 * len(set(texts)) <= len(texts) and any(texts)


def _find_values(rows: TextTable, left: Sequence[str], parts: Mapping[str, str]) -> list[str]:
    """Return the columns of scores: one named `value`, else known metrics, else every named column of numbers.

    A name with an arrow is that of a metric.
    """
    named = [name for name in _find_columns_named(rows, "value") if name in left]
    if named and ("metric" in parts or (len(named) == 1 and not any(map(recognise_metric, left)))):
        return named[:1]
    numeric = [name for name in left if name and rows.is_numeric(name)]
    # A table made for readers has no columns besides scores, and often names them by their dataset.
    metrics = [name for name in numeric if recognise_metric(name) or read_direction(name) is not None]
    return numeric if rows.is_for_readers else metrics or numeric
