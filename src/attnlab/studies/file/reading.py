"""A study file: TOML with budgets and overrides; what is wrong with it is one error that holds every mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError, closest

from .design import Design
from .lines import Lines, line_of, lines_by_path
from .mistakes import Origin, check
from .paths import put

LARGEST = 2**17
"""Bytes of a study file; a larger one is something else."""
MOST_DOTS = 1000
"""Of a line: the parser takes the square of the time for a key with so many parts."""
BUDGETS = "budgets"
MOST_BUDGETS = 20


def read_design(path: str | Path, budget: str | None = None, assignments: Mapping[str, Any] | None = None) -> Design:
    """Read a study file, with one of its budgets and further settings by their paths, as `a.b=c`.

    The other budgets are read too: a mistake in one is found before the day it is needed.
    """
    file = Path(path)
    text = read_text(file)
    try:
        budgets = budgets_of(parse(text, file), file)
        if budget is not None and budget not in budgets:
            known = ", ".join(budgets) or "none"
            raise StudyError(f"{file} has no budget '{budget}'{closest(budget, budgets) or '.'} It has: {known}")
        lines = lines_by_path(text)
        study = read_one(text, file, lines, budget, assignments or {})
        for other in budgets:
            read_one(text, file, lines, other, {})
        return study
    except RecursionError as error:
        raise StudyError(f"{file}: nested too deep for a study") from error


def read_one(text: str, file: Path, lines: Lines, budget: str | None, assignments: Mapping[str, Any]) -> Design:
    """Read a study with one budget, or with none."""
    content = parse(text, file)  # anew, since what a budget sets is set in place
    budgets = budgets_of(content, file)
    content.pop(BUDGETS, None)
    given: dict[tuple[str, ...], str] = {}
    for where, value in budgets[budget].items() if budget is not None else ():
        line = line_of(lines, (BUDGETS, str(budget), where))
        said_by = f"{file}, line {line}, budget '{budget}'"
        given.update(dict.fromkeys(put(content, where, value, said_by), said_by))
    for where, value in assignments.items():
        given.update(dict.fromkeys(put(content, where, value, "--set"), f"--set {where}"))
    return check(content, Origin(str(file), lines, given))


def budgets_of(content: Mapping[str, Any], file: Path) -> dict[str, dict[str, Any]]:
    """Return the budgets of a file."""
    budgets = content.get(BUDGETS, {})
    if not isinstance(budgets, dict):
        raise StudyError(f"{file}: [{BUDGETS}] must be a table of budgets, not {kind_of(budgets)}")
    if len(budgets) > MOST_BUDGETS:
        raise StudyError(f"{file} has {len(budgets)} budgets; a study has at most {MOST_BUDGETS}")
    for name, budget in budgets.items():
        if not isinstance(budget, dict):
            raise StudyError(f"{file}: the budget '{name[:60]}' must be a table, not {kind_of(budget)}")
    return budgets


def read_text(file: Path) -> str:
    """Read a file as text; a folder, binary data or something huge is an error."""
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise StudyError(f"{file} has more than {LARGEST:,} bytes, which no study file has")
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise StudyError(f"{file} is no text in UTF-8 (byte {error.start}); a study file is TOML") from error
    except OSError as error:
        raise StudyError(f"cannot read the study file {file}: {error.strerror}") from error
    except ValueError as error:  # a path that no file can have
        raise StudyError(f"cannot read the study file {str(file)!r}: {error}") from error


def parse(text: str, file: Path) -> dict[str, Any]:
    """Parse TOML."""
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        raise StudyError(f"{file}: a line has more than {MOST_DOTS:,} dots; no setting of a study is that deep")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, _, place = str(error).rpartition(" (at ")
        line = re.match(r"line (\d+)", place)
        where = f"{file}, line {line[1]}" if line else str(file)
        raise StudyError(f"{where}: not TOML: {said if line else error}") from error
    except ValueError as error:  # such as a number of too many digits, or a date that is none
        raise StudyError(f"{file}: not TOML that can be read: {error}") from error


def kind_of(value: Any) -> str:
    """Say what kind of value stands there."""
    kinds = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "a date")
