"""Which column names the arms: the least ambiguous name, unless each row has a value of its own there.

The names of runs tell no arms apart where a column of settings does.
"""

from collections.abc import Mapping, Sequence

from attnlab.errors import RequestError

from .column_names import NAMES, OURS, RUN_NAMES, find_columns_for
from .mapping import quote_map
from .metrics import split_words
from .patterns import guess_pattern
from .rows import TextTable


def has_run_rows(rows: TextTable, parts: Mapping[str, str]) -> bool:
    """Tell whether each row is a run: the table has seeds, or comes from a tracker."""
    return "seed" in parts or bool(find_columns_for(rows, "seed")) or rows.is_of_tracker


def put_repeated_first(rows: TextTable, columns: Sequence[str]) -> list[str]:
    """Return the columns that may name arms; one with a value of its own in every row comes after the others."""
    return sorted(columns, key=lambda name: not 1 < len({*rows.column(name)}) < len(rows.rows))


def names_runs(rows: TextTable, parts: Mapping[str, str]) -> bool:
    """Tell whether the column of arms holds the names of runs, each row its own."""
    arm = parts.get("arm")
    if arm is None or "".join(split_words(arm)) not in RUN_NAMES or not has_run_rows(rows, parts):
        return False
    return len(rows.rows) > 1 and len({*rows.column(arm)}) == len(rows.rows)


def list_repeated_texts(rows: TextTable, names: Sequence[str]) -> list[str]:
    """Return the columns of text that have several values, some of them in several rows, and are no groups by name."""
    texts = [name for name in names if not rows.is_numeric(name) and any(rows.column(name))]
    texts = [name for name in texts if " ".join(split_words(name)) not in NAMES["group"]]
    return [name for name in texts if 1 < len({*rows.column(name)}) < len(rows.rows)]


def find_arm(rows: TextTable, left: Sequence[str], parts: Mapping[str, str], values: Sequence[str] = ()) -> str | None:
    """Return the column of text that names the arms; None if the columns do. Two that could are a question.

    values: the columns of scores, if they are given.
    """
    numeric = [name for name in (*left, *values) if rows.is_numeric(name)]
    texts = [name for name in left if name not in numeric and any(rows.column(name))]
    texts = [name for name in texts if " ".join(split_words(name)) not in NAMES["group"]]
    if not texts or not numeric or any(OURS & {*split_words(name)} for name in numeric):
        return None
    pattern = guess_pattern(numeric, ("arm", "metric", "seed"))
    if pattern is not None and "{seed}" in pattern.text and "{arm}" in pattern.text:
        return None
    found = list_repeated_texts(rows, texts) or ([] if "seed" in parts else texts)
    return choose_arm(rows, found) if found else None


def choose_arm(rows: TextTable, names: Sequence[str]) -> str:
    """Return the only column that may name the arms; several are a question."""
    if len(names) == 1:
        return names[0]
    shown = ", or ".join(f"'{name}' ({', '.join(dict.fromkeys(rows.column(name)))[:40]})" for name in names[:4])
    options = " or ".join(quote_map(f"arm={name}") for name in names[:4])
    raise RequestError(f"which column of '{rows.name}' names the arms: {shown}? Give {options}")
