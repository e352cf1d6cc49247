"""`--map`: which column is which part of a table, as text and as a mapping."""

import re
import shlex
from collections.abc import Mapping

from attnlab.errors import RequestError, closest
from attnlab.inputs import is_whole_number

PER_RUN = ("arm", "seed", "step", "metric", "prediction", "label", "examples", "num_seeds")
IN_MAP = (*PER_RUN[:4], "value", "group", *PER_RUN[4:], "columns", "differences", "table")

NO_NAME = "(no name)"
"""What stands for a column without a name, such as the first one of many tables in papers."""


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
