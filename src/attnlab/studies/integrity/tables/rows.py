"""A table as its file has it, whatever its format: a header, rows of text, and what the text around it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from attnlab.errors import RequestError

from .figure import MARKS, is_empty, parse_figure, parse_number
from .mapping import NO_NAME
from .missing_header import refuse_missing_header

MAX_CELLS = 500_000
LATEX, MARKDOWN = "a LaTeX table", "a Markdown table"
SECTION = "section"
"""The column of what rows that name the rows below them say."""
MLFLOW, RUNS = "an MLflow export", "a runs table of W&B or MLflow"


@dataclass(frozen=True)
class TextTable:
    """The columns of a table, and each row by column with its line in words, such as "line 3".

    Of several files that are read as one table, the line names the file, and is_joined is True.
    form: the format of the file in words, empty for CSV. caption: the text around the table. scores: the columns that
    hold scores, where the format says so. remarks: what was done to read the file, in words. changed: what became of
    columns of the file that are none of the table, in words.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, Mapping[str, str]], ...]
    form: str = ""
    caption: str = ""
    scores: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    is_joined: bool = False
    changed: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_for_readers(self) -> bool:
        """Whether the table was made to be read, in LaTeX or Markdown, and not for programs."""
        return self.form in (LATEX, MARKDOWN)

    @property
    def is_of_tracker(self) -> bool:
        """Whether the table is the runs of an experiment tracker, each in its row."""
        return self.form in (MLFLOW, RUNS)

    def column(self, name: str) -> list[str]:
        """Return the cells of one column."""
        return [row[name] for _, row in self.rows]

    def locate(self, *lines: str) -> str:
        """Name lines and their file, such as "lines 2 and 3 of 'results.csv'"."""
        if self.is_joined:
            return " and ".join(lines)
        numbers = [line.removeprefix("line ") for line in lines]
        are_lines = len(lines) > 1 and all(line.startswith("line ") for line in lines)
        shown = f"lines {' and '.join(numbers)}" if are_lines else " and ".join(lines)
        return f"{shown} of '{self.name}'"

    def is_numeric(self, name: str) -> bool:
        """Tell whether a column holds figures, or nothing, and at least one figure."""
        texts = [text for text in self.column(name) if not is_empty(text)]
        return bool(texts) and all(parse_figure(text) is not None for text in texts)

    def add_columns(self, columns: Mapping[str, Sequence[str]]) -> Self:
        """Return the table with more columns, first; one that exists is replaced."""
        header = (*columns, *(name for name in self.header if name not in columns))
        rows = [
            (line, {**row, **{name: cells[at] for name, cells in columns.items()}})
            for at, (line, row) in enumerate(self.rows)
        ]
        return replace(self, header=header, rows=tuple(rows))

    def join_columns(self, names: Sequence[str]) -> tuple[Self, str]:
        """Return the table with a column of the texts of several columns, and the name of that column."""
        joined = "+".join(name or NO_NAME for name in names)
        return self.add_columns({joined: [", ".join(row[name] for name in names) for _, row in self.rows]}), joined


def make_table(
    path: str,
    header: Sequence[str],
    rows: Sequence[tuple[int | str, Sequence[str]]],
    form: str = "",
    caption: str = "",
    remarks: tuple[str, ...] = (),
) -> TextTable:
    """Make a table of a header and rows; refuse what is none. A row has its line's number, or its place in words."""
    refuse_missing_header(path, header, [row for _, row in rows])
    _check_header(path, header)
    lines = [f"line {place}" if isinstance(place, int) else place for place, _ in rows]
    for line, (_, row) in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise RequestError(f"{line} of '{path}' has {len(row)} cells, and the header has {len(header)}")
    if not rows:
        raise RequestError(f"'{path}' has a header and no rows")
    if (len(rows) + 1) * len(header) > MAX_CELLS:
        raise RequestError(f"'{path}' has more than {MAX_CELLS:,} cells; give the scores of runs, not of every example")
    named = tuple((line, dict(zip(header, row, strict=True))) for line, (_, row) in zip(lines, rows, strict=True))
    table = TextTable(path, tuple(header), named, form, caption, remarks=remarks)
    return _remove_marks(table) if table.is_for_readers else table


def _remove_marks(table: TextTable) -> TextTable:
    """Remove the marks of footnotes behind names, unless names differ in nothing else."""
    columns: dict[str, list[str]] = {}
    for name in table.header:
        texts = table.column(name)
        plain = [text.rstrip(MARKS) or text for text in texts]
        if not table.is_numeric(name) and len({*plain}) == len({*texts}):
            columns[name] = plain
    rows = [
        (line, {name: columns[name][at] if name in columns else text for name, text in row.items()})
        for at, (line, row) in enumerate(table.rows)
    ]
    return replace(table, rows=tuple(rows))


def _check_header(path: str, header: Sequence[str]) -> None:
    if len(header) < 2:
        raise RequestError(
            f"'{path}' has one column, '{''.join(header)}'; columns are separated by commas, semicolons or tabs"
        )
    twice = next((name for number, name in enumerate(header) if name in header[:number]), None)
    if twice == "":
        raise RequestError(
            f"'{path}' has several columns without a name; give each a name. If its first row names groups of columns, "
            "the second row must name the columns in each group"
        )
    if twice is not None:
        raise RequestError(f"'{path}' has two columns named '{twice}'; give each its own name")
    if all(parse_number(name) is not None for name in header):
        raise RequestError(f"'{path}' begins with numbers; the first line must name the columns")


def list_columns(names: Sequence[str], most: int = 8) -> str:
    """Write the names of columns in quotes, and how many more there are."""
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
