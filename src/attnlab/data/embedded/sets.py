"""Sets that need no network and no file: `embedded:NAME[?key=value&key=value]`.

Each is a frozen dataclass whose fields are the keys its name takes, with their defaults.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from attnlab.errors import DataError, closest

from ..probes import PROBES, Probe
from ..sources.rows import Row
from .prose import Prose
from .questions import Questions, YesNo


class Embedded(Protocol):
    """A set that attnlab makes itself."""

    @property
    def kind(self) -> str:
        """What its rows are."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it has."""

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield the rows of a split, or of the whole."""


SETS: Mapping[str, type[Any]] = {"pydoc": Prose, "squad": Questions, "boolq": YesNo, **PROBES}


@dataclass(frozen=True)
class EmbeddedReader:
    """An embedded set as the rows of a source."""

    text: str
    made: Embedded
    split: str | None

    @classmethod
    def parse(cls, text: str, split: str | None) -> EmbeddedReader:
        """Read 'NAME?key=value&key=value'."""
        made: Embedded = build(text)
        if split is not None and split not in made.splits:
            known = closest(split, made.splits) or f"; it has {', '.join(made.splits)}"
            raise DataError(f"embedded:{text} has no split '{split}'{known}")
        return cls(text, made, split)

    @property
    def kind(self) -> str:
        """What the rows are: prose, questions, yes_no or tokens."""
        return self.made.kind

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with its number."""
        for number, row in enumerate(self.made.rows(self.split), start=1):
            yield f"embedded:{self.text}, row {number}", row

    def digest(self) -> str:
        """Hash the rows, so that another generator, or another Python's prose, is another hash."""
        digest = hashlib.sha256()
        for _, row in self.rows():
            digest.update(json.dumps(row, sort_keys=True).encode())
        return digest.hexdigest()


def build(text: str) -> Any:
    """Make the set that a name and its arguments stand for."""
    name, _, arguments = text.partition("?")
    if name not in SETS:
        known = closest(name, SETS) or f"; there are {', '.join(SETS)}"
        raise DataError(f"no set is named 'embedded:{name}'{known}")
    kind = SETS[name]
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    given = {}
    for part in filter(None, arguments.split("&")):
        key, _, value = part.partition("=")
        if key not in defaults:
            known = closest(key, defaults) or f"; it takes {', '.join(defaults) or 'none'}"
            raise DataError(f"embedded:{name} has no argument '{key}'{known}")
        given[key] = _read_number(f"embedded:{name}, argument '{key}'", value, defaults[key])
    return kind(**given)


def make_probe(text: str) -> Probe:
    """Make a probe, such as 'mqar?vocab=64&length=64&pairs=8', with its arrays of tokens and labels."""
    made = build(text.removeprefix("embedded:"))
    if not isinstance(made, Probe):
        raise DataError(f"'{text}' is not a probe; there are {', '.join(PROBES)}")
    return made


def _read_number(what: str, value: str, default: object) -> int | float:
    read = float if isinstance(default, float) else int
    try:
        return read(value)
    except ValueError as error:
        wanted = "a number" if read is float else "a whole number"
        raise DataError(f"{what} needs {wanted}, not '{value}', for example {default}") from error
