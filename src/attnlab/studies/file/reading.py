"""The study file: TOML with budgets and overrides; all of its mistakes are reported in one error."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError, closest
from attnlab.inputs import check_regular, expand_path, suggest_file

from .design import Design
from .mistakes import MAX_LINE_LENGTH, Lines, Origin, format_misfits, index_lines, validate_design
from .overrides import set_value
from .smoke_test import ANSWERED_BY, NO_BUDGET, check_smoke_tests

LARGEST = 2**17
"""Bytes of a study file."""
MAX_DOTS = 1000
"""Dots of a line: the time of the parser is quadratic in the parts of a key."""
REPEATED = ("Cannot overwrite a value", "Cannot declare")
"""How the parser's messages begin if a key or a table is given twice."""
NAME_OF_LINE = re.compile(r"""\s*(?:\[+\s*([^\[\]]+?)\s*\]|((?:[\w.-]|"[^"]*"|'[^']*')+)\s*=)""")
"""The table or key that a line begins with."""
BUDGETS = "budgets"
MAX_BUDGETS = 20


def read_design(path: str | Path, budget: str | None = None, assignments: Mapping[str, Any] | None = None) -> Design:
    """Read a study file, with one of its budgets and further settings by their paths, as `a.b=c`.

    The other budgets are validated too, so that their mistakes are found early.
    """
    file = expand_path(path)
    text = _read_text(file)
    try:
        budgets = _read_budgets(_parse(text, file), file)
        if budget is not None and budget not in budgets:
            known = ", ".join(budgets) or "none"
            raise StudyError(f"{file} has no budget '{budget}'{closest(budget, budgets) or '.'} It has: {known}")
        lines = index_lines(text)
        _check_smoke_tests(_parse(text, file), Origin(str(file), lines))
        study = _read_variant(text, file, lines, budget, assignments or {})
        for other in budgets:
            _read_variant(text, file, lines, other, {})
        return study
    except RecursionError as error:
        raise StudyError(f"{file}: nested too deep for a study") from error


def _read_variant(text: str, file: Path, lines: Lines, budget: str | None, assignments: Mapping[str, Any]) -> Design:
    content = _parse(text, file)  # again for each budget, whose values are set in place
    budgets = content.pop(BUDGETS, {})
    given: dict[tuple[str, ...], str] = {}
    for where, value in budgets[budget].items() if budget is not None else ():
        origin = f"{Origin(str(file), lines).describe((BUDGETS, str(budget), where))}, budget '{budget}'"
        given.update(dict.fromkeys(set_value(content, where, value, origin), origin))
    for where, value in assignments.items():
        given.update(dict.fromkeys(set_value(content, where, value, "--set"), f"--set {where}"))
    return validate_design(content, Origin(str(file), lines, given))


def _read_budgets(content: Mapping[str, Any], file: Path) -> dict[str, dict[str, Any]]:
    budgets = content.get(BUDGETS, {})
    if not isinstance(budgets, dict):
        raise StudyError(f"{file}: [{BUDGETS}] must be a table of budgets, not {_name_kind(budgets)}")
    if len(budgets) > MAX_BUDGETS:
        raise StudyError(f"{file} has {len(budgets)} budgets; a study has at most {MAX_BUDGETS}")
    for name, budget in budgets.items():
        if not isinstance(budget, dict):
            raise StudyError(f"{file}: the budget '{name[:60]}' must be a table, not {_name_kind(budget)}")
    return budgets


def _check_smoke_tests(content: Mapping[str, Any], origin: Origin) -> None:
    misfits = list(check_smoke_tests(content.get(BUDGETS, {})))
    if ANSWERED_BY in content:
        why = f"'{ANSWERED_BY}' belongs into a budget that is only a smoke test, as in [{BUDGETS}.smoke]"
        misfits.append(((ANSWERED_BY,), f"{why}; '{NO_BUDGET}' there stands for the study itself"))
    if misfits:
        raise StudyError(format_misfits(misfits, len(misfits), origin))


def _read_text(file: Path) -> str:
    check_regular(file)
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise StudyError(f"{file} has more than {LARGEST:,} bytes, which no study file has")
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise StudyError(f"{file} is not text in UTF-8 (byte {error.start}); a study file is TOML") from error
    except OSError as error:
        hint = suggest_file(file) if isinstance(error, FileNotFoundError) else ""
        raise StudyError(f"cannot read the study file {file}: {error.strerror}{hint}") from error
    except ValueError as error:  # a path that no file can have
        raise StudyError(f"cannot read the study file {str(file)!r}: {error}") from error


def _parse(text: str, file: Path) -> dict[str, Any]:
    if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
        raise StudyError(f"{file}: a line has more than {MAX_DOTS:,} dots; no setting of a study is that deep")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        if (line := re.match(r"line (\d+)", place)) is not None:
            number, what = int(line[1]), message
        elif place.startswith("end of document"):
            number, what = len(text.rstrip().split("\n")), str(error)
        else:
            raise StudyError(f"{file}: not TOML: {error}") from error
        key = NAME_OF_LINE.match(text.split("\n")[number - 1][:MAX_LINE_LENGTH])
        if key is not None and message.startswith(REPEATED):
            what = f"'{key[1] or key[2]}' is there a second time; give one of the two another name, or remove it"
        else:
            what = f"not TOML: {what}"
        raise StudyError(f"{file}, line {number}: {what}") from error
    except ValueError as error:  # such as a number with too many digits, or an invalid date
        raise StudyError(f"{file}: not TOML that can be read: {error}") from error


def _name_kind(value: Any) -> str:
    kinds = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "a date")
