"""Reading rows of a source, with errors that say where a row stands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from attnlab.data import Source, open_source
from attnlab.errors import TaskError, closest

Row = Mapping[str, Any]


class PlacedExample(Protocol):
    """An example that knows its id and where it stands."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def place(self) -> str:
        """Where it stands, such as the file and the row."""


def get_source(source: str | Path | Source, split: str | None = None) -> Source:
    """Open a source by its name; return one that is open already."""
    return source if isinstance(source, Source) else open_source(source, split=split)


def read_rows(source: Source) -> Iterator[tuple[str, Row]]:
    """Yield each row after its place; a source without rows is an error."""
    is_empty = True
    for place, row in source.reader.rows():
        is_empty = False
        yield place, row
    if is_empty:
        raise TaskError(f"{source.name} has no rows; give one with at least one")


def find_column(row: Row, names: Sequence[str], place: str) -> str:
    """Return the first of several names that a row has; if it has none, the error names the closest one."""
    for name in names:
        if name in row:
            return name
    hint = closest(names[0], row) or "."
    raise TaskError(f"{place}: a column '{names[0]}' is needed{hint} The columns are {', '.join(map(repr, row))}")


def check_unique_ids(examples: Iterable[PlacedExample]) -> None:
    """Raise an error if two examples have one id, which no prediction file can tell apart."""
    places: dict[str, str] = {}
    for example in examples:
        if example.id in places:
            raise TaskError(
                f"{example.place}: the id '{example.id}' stands at {places[example.id]} already; ids must differ"
            )
        places[example.id] = example.place
