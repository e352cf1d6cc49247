"""Embedded sets by name: `embedded:NAME[?key=value&key=value]`.

Each is a frozen dataclass whose fields are the keys that its name accepts, with their defaults.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from attnlab.errors import DataError, closest

from ..probes import PROBES, Probe
from ..row import Row, hash_rows
from .prose import Prose
from .questions import Questions, YesNo

Embedded = Prose | Questions | YesNo | Probe

SETS: Mapping[str, type[Embedded]] = {"pydoc": Prose, "squad": Questions, "boolq": YesNo, **PROBES}


@dataclass(frozen=True)
class EmbeddedReader:
    """Reads an embedded set as the rows of a source."""

    text: str
    made: Embedded
    split: str | None

    @classmethod
    def parse(cls, text: str, split: str | None) -> Self:
        """Parse 'NAME?key=value&key=value'."""
        made = _build(text)
        if split is not None and split not in made.splits:
            hint = closest(split, made.splits) or f"; it has {', '.join(made.splits)}"
            raise DataError(f"embedded:{text} has no split '{split}'{hint}")
        return cls(text, made, split)

    @property
    def kind(self) -> str:
        """The kind of the rows: prose, squad, boolq or tokens."""
        return self.made.kind

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with its place."""
        for number, row in enumerate(self.made.rows(self.split), start=1):
            yield f"embedded:{self.text}, row {number}", row

    def digest(self) -> str:
        """Hash the rows, so that a changed generator, or the prose of another Python, has another hash."""
        return _hash_set(self)


@functools.cache
def _hash_set(reader: EmbeddedReader) -> str:
    return hash_rows(row for _, row in reader.rows())


def make_probe(text: str) -> Probe:
    """Make a probe from its name and arguments, such as 'mqar?vocab=64&length=64&pairs=8'."""
    probe = _build(text.removeprefix("embedded:"))
    if not isinstance(probe, Probe):
        raise DataError(f"'{text}' is not a probe; there are {', '.join(PROBES)}")
    return probe


def _build(text: str) -> Embedded:
    name, _, arguments = text.partition("?")
    if name not in SETS:
        hint = closest(name, SETS) or f"; there are {', '.join(SETS)}"
        raise DataError(f"no set is named 'embedded:{name}'{hint}")
    defaults = {field.name: field.default for field in dataclasses.fields(SETS[name])}
    values: dict[str, Any] = {}
    for part in filter(None, arguments.split("&")):
        key, _, value = part.partition("=")
        if key not in defaults:
            hint = closest(key, defaults) or f"; it takes {', '.join(defaults)}"
            raise DataError(f"embedded:{name} has no argument '{key}'{hint}")
        parse, unit = (float, "a number") if isinstance(defaults[key], float) else (int, "a whole number")
        try:
            values[key] = parse(value)
        except ValueError as error:
            place = f"embedded:{name}, argument '{key}'"
            raise DataError(f"{place} needs {unit}, not '{value}', for example {defaults[key]}") from error
    return SETS[name](**values)
