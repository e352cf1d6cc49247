"""Which line of a TOML file a value comes from: its own key's, or that of the nearest table around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Lines = Mapping[tuple[str, ...], int]
PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
HEADER = re.compile(r"(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?")
KEY = re.compile(rf"({PART}(?:\s*\.\s*{PART})*)\s*=")
LONGEST = 500
"""Characters of a line that are looked at: names of a study are short."""


def line_of(lines: Lines, place: Sequence[str | int]) -> int | None:
    """Find the line of a path, or of the nearest one around it."""
    for end in range(len(place), 0, -1):
        if (path := tuple(map(str, place[:end]))) in lines:
            return lines[path]
    return None


def lines_by_path(text: str) -> Lines:
    """Return the first line of every key and table, by its path."""
    found: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        start = line[:LONGEST].strip()
        if header := HEADER.fullmatch(start):
            table = resolved(keys_of(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
            found.setdefault(table, number)
        elif key := KEY.match(start):
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
    return tuple(part.strip("\"'") for part in re.findall(PART, dotted))
