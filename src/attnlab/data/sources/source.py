"""A source: texts and rows by name, from files, the hub, or the sets embedded in attnlab.

A name is the path of a file or folder, `hf:NAME[/CONFIG]`, or `embedded:NAME[?key=value&key=value]`.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from attnlab.errors import DataError, closest
from attnlab.inputs import expand_path

from ..row import Row
from .rows import BY_LINE, UNITS, FileLayout, Unit

EMBEDDED, HUB = "embedded:", "hf:"
TITLE = re.compile(r"\s*= (?!=)(.+)(?<!=) =\s*$")
"""The title line of an article in WikiText; headings of sections have two or more signs on each side."""


class Reader(Protocol):
    """Reads the rows of a source."""

    @property
    def kind(self) -> str:
        """The kind of the rows: text, jsonl, csv, tsv, parquet, json, squad, boolq, hf, prose or tokens."""

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Yield each row with its place, such as the file and the line."""

    def digest(self) -> str:
        """Return the SHA-256 of the content."""


@dataclass(frozen=True)
class Source:
    """Rows and texts under one name. Each call of `rows` or `documents` starts from the beginning."""

    name: str
    reader: Reader
    column: str | None = None
    layout: FileLayout = BY_LINE

    @property
    def kind(self) -> str:
        """The kind of the rows, such as 'text', 'tsv' or 'squad'."""
        return self.reader.kind

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the content, which does not depend on compression or the file's name."""
        return self.reader.digest()

    @property
    def identity(self) -> str:
        """A hash of everything that determines the documents: the content, the column and the layout."""
        # Keys of cached token files depend on this exact text.
        layout = f"Layout(unit={self.layout.unit!r}, columns={self.layout.columns!r})"
        return hashlib.sha256(f"({self.hash!r}, {self.column!r}, {layout})".encode()).hexdigest()

    def rows(self) -> Iterator[Row]:
        """Yield the rows; a source without rows is an error."""
        return (row for _, row in self._iterate_with_places())

    def documents(self) -> Iterator[str]:
        """Yield the texts: of `column`, of each context once, or of the only column of text."""
        return (text for text, _ in self.documents_of_articles())

    def documents_of_articles(self) -> Iterator[tuple[str, str | None]]:
        """Yield each text with the title of its article, or None if the source does not name it.

        Rows name it in the column 'title', text files by lines like WikiText's ' = Title = '.
        """
        column = self.column
        last: object = None
        article: str | None = None
        is_lines = self.kind == "text" and self.layout.unit == "line"
        for place, row in self._iterate_with_places():
            column = column or _choose_text_column(self.name, row)
            text = row.get(column)
            if not isinstance(text, str):
                raise _refuse_column(place, column, row)
            # A paragraph of SQuAD is repeated with each of its questions, but is one document.
            if is_lines and (heading := TITLE.match(text)):
                article = heading[1]
            elif not is_lines:
                article = str(row["title"]) if row.get("title") and column != "title" else None
            if "paragraph" not in row or column != "context" or row["paragraph"] != last:
                yield text, article
            last = row.get("paragraph")

    def need(self, *columns: str) -> None:
        """Raise an error if the first row lacks a column; it names the closest one."""
        place, row = next(self._iterate_with_places())
        for column in columns:
            if column not in row:
                raise _refuse_column(place, column, row)

    def _iterate_with_places(self) -> Iterator[tuple[str, Row]]:
        is_empty = True
        for located in self.reader.rows():
            is_empty = False
            yield located
        if is_empty:
            raise DataError(f"{self.name} is empty: it has no rows, and at least one is needed")


def open_source(
    name: str | Path, *, split: str | None = None, column: str | None = None, unit: Unit = "line",
    columns: Sequence[str] | None = None,
) -> Source:  # fmt: skip
    """Open a source by its name.

    `split` selects the files of a folder by their names, or a split of the hub or an embedded set. `column` is the
    one that `documents` yields. `unit` is a document of a text file: a line, a paragraph (up to a blank line), or the
    file. `columns` names the columns of a table without a header.
    """
    if unit not in UNITS:
        raise DataError(f"unit must be one of {', '.join(UNITS)}, not '{unit}'{closest(str(unit), UNITS)}")
    text = str(name)
    layout = FileLayout(unit, None if columns is None else tuple(columns))
    reader: Reader
    if text.startswith(EMBEDDED):
        from ..embedded.sets import EmbeddedReader

        reader = EmbeddedReader.parse(text.removeprefix(EMBEDDED), split)
    elif text.startswith(HUB):
        from .hub import HubReader

        if text == HUB:
            raise DataError("'hf:' lacks the name of a dataset on the hub, such as hf:wikitext/wikitext-2-raw-v1")
        reader = HubReader(text.removeprefix(HUB), split)
    else:
        from .folder import FileReader

        reader = FileReader.find(expand_path(text), split, layout)
    return Source(text, reader, column, layout)


def _choose_text_column(name: str, row: Row) -> str:
    for usual in ("text", "context"):
        if isinstance(row.get(usual), str) and (usual == "text" or "paragraph" in row):
            return usual
    if "input_ids" in row:
        raise DataError(f"{name} has token ids and no text; use its rows, or data.make_probe")
    texts = [column for column, value in row.items() if isinstance(value, str)]
    if len(texts) == 1:
        return texts[0]
    known = ", ".join(map(repr, texts or row))
    raise DataError(
        f"{name} has no single column of text; name one of {known} (column= in Python and in a study's [data], --set "
        "data.column= for attnlab train, --column for attnlab data)"
    )


def _refuse_column(place: str, column: str, row: Row) -> DataError:
    if column in row:
        return DataError(f"{place}: column '{column}' is {row[column]!r}, but a text is needed")
    hint = closest(column, row) or "."
    return DataError(f"{place}: there is no column '{column}'{hint} The columns are {', '.join(map(repr, row))}")
