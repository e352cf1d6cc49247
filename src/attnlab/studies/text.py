"""A study file: TOML with budgets and overrides, and every mistake in it at once, with line and closest match."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError, closest

from .design import Design

LARGEST = 2**20
"""Bytes of a study file; a larger one is something else."""
MOST_SHOWN = 20
BUDGETS = "budgets"
Path_ = tuple[str | int, ...]


def read_design(path: str | Path, budget: str | None = None, assignments: Mapping[str, Any] | None = None) -> Design:
    """Read a study file, with one of its budgets and further settings by their paths, as `a.b=c`."""
    file = Path(path)
    text = read_text(file)
    content = parse(text, file)
    budgets = content.pop(BUDGETS, {})
    if not isinstance(budgets, dict):
        raise StudyError(f"{file}: [{BUDGETS}] must be a table of budgets, not {kind_of(budgets)}")
    if budget is not None:
        if budget not in budgets:
            known = ", ".join(budgets) or "none"
            raise StudyError(f"{file} has no budget '{budget}'{closest(budget, budgets) or '.'} It has: {known}")
        if not isinstance(budgets[budget], dict):
            raise StudyError(f"{file}: the budget '{budget}' must be a table, not {kind_of(budgets[budget])}")
        for where, value in budgets[budget].items():
            assign(content, where, value, f"{file}, budget '{budget}'")
    for where, value in (assignments or {}).items():
        assign(content, where, value, "--set")
    return check(content, text, str(file))


def read_text(file: Path) -> str:
    """Read a file as text; a folder, binary data or something huge is an error."""
    try:
        if file.stat().st_size > LARGEST:
            raise StudyError(f"{file} has {file.stat().st_size:,} bytes; a study file has at most {LARGEST:,}")
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(f"{file} is no text in UTF-8 (byte {error.start}); a study file is TOML") from error
    except OSError as error:
        raise StudyError(f"cannot read the study file {file}: {error.strerror}") from error


def parse(text: str, file: Path) -> dict[str, Any]:
    """Parse TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{file}: not TOML: {error}") from error
    except (RecursionError, ValueError) as error:  # nested too deep; an integer of too many digits
        raise StudyError(f"{file}: not TOML that can be read: {type(error).__name__}: {error}") from error


def assign(content: dict[str, Any], where: str, value: Any, said_by: str) -> None:
    """Put a value at a path; a list is stepped into by a number, or by the `name` of its entry."""
    *parents, last = where.split(".")
    place: Any = content
    for number, step in enumerate(parents):
        place = entry(place, step)
        if place is None:
            raise StudyError(f"{said_by}: '{where}' leads nowhere: there is no '{'.'.join(parents[: number + 1])}'")
    if isinstance(place, dict):
        place[last] = value
    elif isinstance(place, list) and last.isdigit() and int(last) < len(place):
        place[int(last)] = value
    else:
        raise StudyError(f"{said_by}: '{where}' leads nowhere: there is no '{last}' to set")


def entry(place: Any, step: str) -> Any:
    """Step into a table or a list; a table that is not there yet is made."""
    if isinstance(place, dict):
        return place.setdefault(step, {})
    if isinstance(place, list):
        if step.isdigit() and int(step) < len(place):
            return place[int(step)]
        return next((one for one in place if isinstance(one, dict) and one.get("name") == step), None)
    return None


def check(content: dict[str, Any], text: str, name: str) -> Design:
    """Make a study of what a file says, or raise one error that holds all that is wrong with it."""
    try:
        study = Design.model_validate(content)
    except ValidationError as error:
        said = [describe(one, text, name) for one in error.errors(include_url=False, include_context=False)]
        more = [f"and {len(said) - MOST_SHOWN} more"] if len(said) > MOST_SHOWN else []
        raise StudyError("\n".join([*dict.fromkeys(said[:MOST_SHOWN]), *more])) from error
    except RecursionError as error:
        raise StudyError(f"{name}: nested too deep for a study") from error
    return study


def describe(error: Any, text: str, name: str) -> str:
    """Say one mistake with its line, and the closest match where a name is unknown."""
    place: Path_ = tuple(error["loc"])
    line = line_of(text, place)
    where = f"{name}, line {line}" if line else name
    dotted = ".".join(str(step) for step in place) or "the file"
    if error["type"] == "extra_forbidden":
        known = names_at(place[:-1])
        hint = closest(str(place[-1]), known) or "."
        return f"{where}: nothing is called '{dotted}'{hint} There is {', '.join(known)}"
    if error["type"] == "missing":
        return f"{where}: '{dotted}' is missing"
    message = str(error["msg"]).removeprefix("Value error, ")
    given = repr(error["input"])
    shown = "" if isinstance(error["input"], dict | list) else f", not {given[:60]}{'…' * (len(given) > 60)}"
    return f"{where}: '{dotted}': {message[:1].lower()}{message[1:]}{shown}"


def names_at(place: Path_) -> list[str]:
    """Return the names that a part of a study has."""
    model: Any = Design
    for step in place:
        if isinstance(step, int) or model is None:
            continue
        field = getattr(model, "model_fields", {}).get(step)
        model = part_in(field.annotation) if field is not None else model
    return list(getattr(model, "model_fields", {}))


def part_in(annotation: Any) -> Any:
    """Find the part of a study in a type, such as list[Stage]."""
    if hasattr(annotation, "model_fields"):
        return annotation
    found = [part_in(inner) for inner in getattr(annotation, "__args__", ())]
    return next((inner for inner in found if inner is not None), None)


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """Find the line of a file that a path comes from: its own, or that of the nearest table around it."""
    lines = lines_by_path(text)
    # A path into a part that a line stands for (an arm that is a text) is that line's.
    for end in range(len(place), 0, -1):
        if tuple(map(str, place[:end])) in lines:
            return lines[tuple(map(str, place[:end]))]
    return None


def lines_by_path(text: str) -> dict[tuple[str, ...], int]:
    """Return the first line of every key and table, by its path."""
    found: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$", line):
            table = resolved(keys_of(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
            found.setdefault(table, number)
        elif key := re.match(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""", line):
            found.setdefault((*table, *keys_of(key[1])), number)
    return found


def resolved(keys: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Put the number of the last entry behind each list on the way to a table, but not behind the table itself."""
    path: tuple[str, ...] = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if path in counts and position < len(keys) - 1:
            path = (*path, str(counts[path]))
    return path


def keys_of(dotted: str) -> tuple[str, ...]:
    """Part a dotted key, quoted parts included."""
    return tuple(part.strip("\"'") for part in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", dotted))


def kind_of(value: Any) -> str:
    """Say what kind of value stands there."""
    return {dict: "a table", list: "a list", str: "a text", bool: "true or false"}.get(type(value), "a number")
