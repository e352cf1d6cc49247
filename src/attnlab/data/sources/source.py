"""A source: one way of naming text and rows, whether they are files, on the hub, or embedded in attnlab.

A name is the path of a file or folder, `hf:NAME[/CONFIG]`, or `embedded:NAME[?key=value&key=value]`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from attnlab.errors import DataError, closest

from .rows import BY_LINE, UNITS, FileLayout, Row, Unit

EMBEDDED, HUB = "embedded:", "hf:"
TITLE = re.compile(r"\s*= (?!=)(.+)(?<!=) =\s*$")
"""A line that begins an article, as WikiText marks it; sections have two signs or more on each side."""


class Reader(Protocol):
    """Where a source's rows come from."""

    @property
    def kind(self) -> str:
        """What the rows are: text, jsonl, csv, tsv, parquet, json, squad, boolq, hf, prose or tokens."""

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with words that say where it stands."""

    def digest(self) -> str:
        """Return the SHA-256 of the content."""


@dataclass(frozen=True)
class Source:
    """Rows and texts under one name. Each call of `rows` or `documents` starts at the beginning again."""

    name: str
    reader: Reader
    column: str | None = None
    layout: FileLayout = BY_LINE

    @property
    def kind(self) -> str:
        """What the rows are, such as 'text', 'tsv' or 'squad'."""
        return self.reader.kind

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the content, whatever compresses it and whatever the file is called."""
        return self.reader.digest()

    @property
    def identity(self) -> str:
        """A hash of all that decides the documents: the content, the column, and where a document ends."""
        # Cached token files are found by the hash of exactly this text.
        layout = f"Layout(unit={self.layout.unit!r}, columns={self.layout.columns!r})"
        return hashlib.sha256(f"({self.hash!r}, {self.column!r}, {layout})".encode()).hexdigest()

    def rows(self) -> Iterator[Row]:
        """Yield the rows one after another; a source without any is an error."""
        for _, row in self._located():
            yield row

    def documents(self) -> Iterator[str]:
        """Yield the texts: of `column`, of a context once, or of the only column that can be meant."""
        for text, _ in self.documents_of_articles():
            yield text

    def documents_of_articles(self) -> Iterator[tuple[str, str | None]]:
        """Yield each text with the article it is part of, where the source says so; texts of one article follow it.

        A row says it in its column 'title', a text file by lines, as WikiText has them: ' = Title = '.
        """
        column = self.column
        last: object = None
        article: str | None = None
        is_lines = self.kind == "text" and self.layout.unit == "line"
        for place, row in self._located():
            column = column or text_column(self.name, row)
            text = row.get(column)
            if not isinstance(text, str):
                raise _no_text(place, column, row)
            # A paragraph of SQuAD comes with each of its questions, and is one document.
            if is_lines and (heading := TITLE.match(text)):
                article = heading[1]
            elif not is_lines:
                article = str(row["title"]) if row.get("title") and column != "title" else None
            if "paragraph" not in row or column != "context" or row["paragraph"] != last:
                yield text, article
            last = row.get("paragraph")

    def place(self, number: int) -> str:
        """Say where a row stands, counted from 0: the file, the row and the line."""
        located = next(islice(self.reader.rows(), number, None), None)
        return f"{self.name}, row {number + 1}" if located is None else located[0]

    def need(self, *columns: str) -> None:
        """Refuse a source whose first row lacks a column; name the closest one it has."""
        place, row = next(self._located())
        for column in columns:
            if column not in row:
                raise _no_text(place, column, row)

    def _located(self) -> Iterator[tuple[str, Row]]:
        is_empty = True
        for located in self.reader.rows():
            is_empty = False
            yield located
        if is_empty:
            raise DataError(f"{self.name} is empty: it has no row, and at least one is needed")


def open_source(
    name: str | Path,
    *,
    split: str | None = None,
    column: str | None = None,
    unit: Unit = "line",
    columns: Sequence[str] | None = None,
) -> Source:
    """Find a source by its name.

    `split` chooses among a folder's files by their names, or a split of the hub or an embedded set. `column` is
    the one `documents` yields. `unit` is what a document of a text file is: a line, a paragraph (up to a blank
    line), or the file. `columns` names the columns of a table without a header.
    """
    if unit not in UNITS:
        raise DataError(f"unit is one of {', '.join(UNITS)}, not '{unit}'{closest(str(unit), UNITS)}")
    text = str(name)
    layout = FileLayout(unit, None if columns is None else tuple(columns))
    reader: Reader
    if text.startswith(EMBEDDED):
        from ..embedded.sets import EmbeddedReader

        reader = EmbeddedReader.parse(text.removeprefix(EMBEDDED), split)
    elif text.startswith(HUB):
        from .hub import HubReader

        reader = HubReader(text.removeprefix(HUB), split)
    else:
        from .folder import FileReader

        reader = FileReader.find(Path(text).expanduser(), split, layout)
    return Source(text, reader, column, layout)


def text_column(name: str, row: Row) -> str:
    """Return the column that must be meant where none was named."""
    for usual in ("text", "context"):
        if isinstance(row.get(usual), str) and (usual == "text" or "paragraph" in row):
            return usual
    if "input_ids" in row:
        raise DataError(f"{name} has token ids and no text; take its rows, or data.make_probe")
    texts = [column for column, value in row.items() if isinstance(value, str)]
    if len(texts) == 1:
        return texts[0]
    raise DataError(f"{name}: which column is the text? Give column= one of {', '.join(map(repr, texts or row))}")


def _no_text(place: str, column: str, row: dict[str, Any]) -> DataError:
    if column in row:
        return DataError(f"{place}: column '{column}' is {row[column]!r} where a text is needed")
    known = closest(column, row) or ""
    return DataError(f"{place}: there is no column '{column}'{known} The columns are {', '.join(map(repr, row))}")
