"""The mistakes of a study in one message: the line of each, what is wrong, and the closest match of a name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError, closest
from attnlab.training.spec import list_names

from .addresses import Misfit
from .consistency import check_choices, choose_entries, find_misfits
from .design import Design
from .horizons import expand_horizons
from .overrides import find_wrong_settings

MAX_SHOWN = 20
NAMES = "a name of letters, digits and . _ + - that begins with a letter or a digit"
RENAMED = {"stages": "phases", "phases": "segments"}
"""Words of older study files, and their successors."""
LONGEST = 80
"""Characters of a name or a value that are shown."""
Lines = Mapping[tuple[str, ...], int]
PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
HEADER = re.compile(r"(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?")
KEY = re.compile(rf"({PART}(?:\s*\.\s*{PART})*)\s*=")
MAX_LINE_LENGTH = 500
"""Characters of a line that are searched for a name."""


@dataclass(frozen=True)
class Origin:
    """Where the values of a study come from: lines of a file, a budget or `--set`."""

    name: str
    lines: Lines = field(default_factory=dict)
    given: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def describe(self, place: Sequence[str | int]) -> str:
        """Return the origin of a value: that of its path, or of the nearest table around it."""
        paths = [tuple(map(str, place[:end])) for end in range(len(place), 0, -1)]
        if (given := next((self.given[path] for path in paths if path in self.given), None)) is not None:
            return given
        line = next((self.lines[path] for path in paths if path in self.lines), None)
        return f"{self.name}, line {line}" if line else self.name


def validate_design(content: Mapping[str, Any], origin: Origin) -> Design:
    """Make a design of plain data, or raise one error with all of its mistakes."""
    try:
        design = Design.model_validate(content)
    except ValidationError as error:
        # Inconsistencies are reported together with invalid values.
        errors = [each for each in error.errors(include_url=False, include_context=False) if each["loc"]]
        unknown = list(check_choices(content))  # before the choice, so that all names are candidates for a match
        places = [place for place, _ in unknown]
        misfits = [*unknown, *(misfit for misfit in find_misfits(choose_entries(content)) if misfit[0] not in places)]
        described = [(each["loc"], _describe(each)) for each in errors[:MAX_SHOWN]] + misfits[:MAX_SHOWN]
        raise StudyError(format_misfits(described, len(errors) + len(misfits), origin)) from error
    if misfits := list(find_wrong_settings(design)):
        raise StudyError(format_misfits(misfits, len(misfits), origin))
    return expand_horizons(design)


def index_lines(text: str) -> Lines:
    """Return the first line of every key and table, by its path."""
    lines: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        start = line[:MAX_LINE_LENGTH].strip()
        if header := HEADER.fullmatch(start):
            table = _resolve(_split_keys(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
            lines.setdefault(table, number)
        elif key := KEY.match(start):
            lines.setdefault((*table, *_split_keys(key[1])), number)
    return lines


def format_misfits(misfits: Sequence[Misfit], number: int, origin: Origin) -> str:
    """Write a line for each of the first mistakes, with its origin. number: how many there are."""
    lines = dict.fromkeys(f"{origin.describe(place)}: {message}" for place, message in misfits)
    more = [f"and {number - MAX_SHOWN} more"] if number > MAX_SHOWN else []
    return "\n".join([*list(lines)[:MAX_SHOWN], *more])


def _describe(error: Any) -> str:
    place = tuple(error["loc"])
    dotted = _shorten(".".join(str(step) for step in place if step != "[key]"))
    if error["type"] == "extra_forbidden":
        if place[-1] in RENAMED and (place[-1] == "stages" or len(place) > 1):
            words = "a study has [[phases]], and a phase [[phases.segments]]"
            return f"'{dotted}' is now called '{RENAMED[place[-1]]}': {words}"
        known = list_names(Design, place[:-1])
        hint = closest(str(place[-1])[:LONGEST], known) or "."
        return f"there is no '{dotted}'{hint} The settings are {', '.join(known)}"
    if error["type"] == "missing":
        return f"'{dotted}' is missing"
    if error["type"] == "string_pattern_mismatch":
        needed = NAMES if place[-1] in ("[key]", "name", "baseline", "after") else "a text without control characters"
        return f"'{dotted}': give {needed}"
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    value = error["input"]
    # The repr of other values could be huge, or too deep to make.
    is_plain = isinstance(value, str | bool | float) or (isinstance(value, int) and abs(value) < 10**40)
    shown = f", not {_shorten(repr(value))}" if is_plain and error["type"] != "value_error" else ""
    return f"'{dotted}': {message[:1].lower()}{message[1:]}{shown}"


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _resolve(keys: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Insert the number of the last entry after each list on the path to a table, but not after the table itself."""
    path: tuple[str, ...] = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if path in counts and position < len(keys) - 1:
            path = (*path, str(counts[path]))
    return path


def _split_keys(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(PART, dotted))
