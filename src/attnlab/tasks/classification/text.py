"""Examples of classification: a text or a pair of texts with a label, and how they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.data import Source, open_source
from attnlab.errors import DataError, TaskError

from ..reading import Row, check_unique_ids, find_column, read_rows
from .labels import Labels, Range

ID_COLUMNS = ("idx", "index", "id", "pairID")
TITLE_END = " -- "
"""The separator between the title of an article and its passage in BoolQ."""
UNLABELLED = ("-1", "", "None")
"""Values of the label column in a test set without labels."""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One or two texts and their label; None in a test set without labels."""

    id: str
    text: str
    pair: str | None
    label: int | float | None
    place: str
    cluster: str | None = None
    """What dependent texts share, such as BoolQ's passage; None for independent texts."""


@dataclass(frozen=True)
class Columns:
    """The columns of texts and labels, each under the first of several names; `headerless` for a file without names."""

    text: tuple[str, ...]
    label: tuple[str, ...] = ("label",)
    pair: tuple[str, ...] = ()
    headerless: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Labels of rows that are skipped, such as SNLI's '-' where annotators disagree."""
    cluster: tuple[str, ...] = ()
    """Columns of the cluster of a row, the first that exists, up to `TITLE_END`."""

    def open(self, source: str | Path | Source, split: str | None = None) -> Source:
        """Open a source; a file without a header gets the columns of `headerless`."""
        if isinstance(source, Source):
            return source
        if self.headerless and not str(source).startswith(("hf:", "embedded:")):
            try:
                opened = open_source(source, split=split)
                opened.need(self.text[0])
                return opened
            except DataError:
                # Its first row is not a header. Any other error of the file is raised again below.
                return open_source(source, split=split, columns=self.headerless)
        return open_source(source, split=split)

    def read(self, source: Source, labels: Labels | Range) -> list[LabelledText]:
        """Return the labelled texts of a source; two rows of one id are an error."""
        texts: list[LabelledText] = []
        for number, (place, row) in enumerate(read_rows(source)):
            label_column = next((name for name in self.label if name in row), None)
            if label_column is None or str(row[label_column]) not in self.skipped:
                texts.append(self._read_row(row, place, label_column, labels, number))
        if not texts:
            raise TaskError(f"{source.name} has no row with a label that counts; give one with at least one")
        check_unique_ids(texts)
        return texts

    def _read_row(
        self, row: Row, place: str, label_column: str | None, labels: Labels | Range, number: int
    ) -> LabelledText:
        text, pair = self._read_texts(row, place)
        has_label = label_column is not None and str(row[label_column]) not in UNLABELLED
        label = labels.read(row[label_column], place) if label_column is not None and has_label else None
        column = next((name for name in self.cluster if row.get(name)), None)
        cluster = None if column is None else str(row[column]).partition(TITLE_END)[0]
        id_column = next((name for name in ID_COLUMNS if name in row), None)
        return LabelledText(str(number if id_column is None else row[id_column]), text, pair, label, place, cluster)

    def _read_texts(self, row: Row, place: str) -> tuple[str, str | None]:
        columns = [find_column(row, names, place) for names in (self.text, self.pair) if names]
        # QQP has empty questions; a pair needs one text that is not empty.
        if not any(isinstance(row[name], str) and row[name].strip() for name in columns):
            value = row[columns[-1]]
            raise TaskError(
                f"{place}: column '{columns[-1]}' is {value!r} where a text is needed; fill it in or drop the row"
            )
        return str(row[columns[0]]), str(row[columns[1]]) if self.pair else None


def check_labelled(texts: Sequence[LabelledText]) -> None:
    """Raise an error if a text has no label."""
    unlabelled = next((one for one in texts if one.label is None), None)
    if unlabelled is not None:
        raise TaskError(f"{unlabelled.place}: there is no label; a test set without labels can only be predicted")
