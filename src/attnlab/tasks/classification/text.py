"""A text, or a pair of texts, with a label: what classification is made of, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.data import Source, open_source
from attnlab.errors import DataError, TaskError

from ..reading import Row, column_of, located, text_in
from .labels import Labels, Range

ID_COLUMNS = ("idx", "index", "id", "pairID")
TITLE_END = " -- "
"""What BoolQ writes between the title of an article and its passage."""
UNLABELLED = ("-1", "", "None")
"""How a test set without labels fills the column it should not have."""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One or two texts and their label; None where a test set keeps it to itself."""

    id: str
    text: str
    pair: str | None
    label: int | float | None
    place: str
    cluster: str | None = None
    """What texts that are not independent have in common, such as BoolQ's passage; None: nothing."""


@dataclass(frozen=True)
class Columns:
    """Where a file has texts and labels, each under the first of several names; `headerless` if it names none."""

    text: tuple[str, ...]
    label: tuple[str, ...] = ("label",)
    pair: tuple[str, ...] = ()
    headerless: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Labels of rows that are left out by agreement, such as SNLI's '-' where annotators disagree."""
    cluster: tuple[str, ...] = ()
    """Columns of which the first that is there says what a row has in common with others, up to `TITLE_END`."""

    def open(self, source: str | Path | Source, split: str | None = None) -> Source:
        """Open a source, with the columns it does not name itself."""
        if isinstance(source, Source):
            return source
        if self.headerless and not str(source).startswith(("hf:", "embedded:")):
            try:
                found = open_source(source, split=split)
                found.need(self.text[0])
                return found
            except DataError:
                # Its first row is no header. What else is wrong with the file comes out again below.
                return open_source(source, split=split, columns=self.headerless)
        return open_source(source, split=split)

    def read(self, source: Source, labels: Labels | Range) -> list[LabelledText]:
        """Return the labelled texts of a source; two rows of one id are an error."""
        texts: list[LabelledText] = []
        places: dict[str, str] = {}
        for number, (place, row) in enumerate(located(source)):
            label_column = next((name for name in self.label if name in row), None)
            if label_column is not None and str(row[label_column]) in self.skipped:
                continue
            one = self._read_row(row, place, label_column, labels, number)
            if one.id in places:
                raise TaskError(f"{place}: the id '{one.id}' stands at {places[one.id]} already; ids must differ")
            places[one.id] = place
            texts.append(one)
        if not texts:
            raise TaskError(f"{source.name} has no row with a label that counts; give one with at least one")
        return texts

    def _read_row(
        self, row: Row, place: str, label_column: str | None, labels: Labels | Range, number: int
    ) -> LabelledText:
        text, pair = self._texts(row, place)
        has_label = label_column is not None and str(row[label_column]) not in UNLABELLED
        label = labels.read(row[label_column], place) if label_column is not None and has_label else None
        column = next((name for name in self.cluster if row.get(name)), None)
        cluster = None if column is None else str(row[column]).partition(TITLE_END)[0]
        return LabelledText(id_of(row, number), text, pair, label, place, cluster)

    def _texts(self, row: Row, place: str) -> tuple[str, str | None]:
        first = column_of(row, self.text, place)
        if not self.pair:
            return text_in(row, first, place), None
        second = column_of(row, self.pair, place)
        # QQP has questions that are empty; a pair of which nothing is left has no label that could be right.
        filled = first if str(row[first]).strip() else second
        text_in(row, filled, place)
        return str(row[first]), str(row[second])


def id_of(row: Row, number: int) -> str:
    """Return a row's own id, or its number from 0."""
    name = next((name for name in ID_COLUMNS if name in row), None)
    return str(number) if name is None else str(row[name])


def clusters_of(texts: Sequence[LabelledText]) -> list[str] | None:
    """Return the cluster of each text; None where every text is on its own."""
    clusters = [one.id if one.cluster is None else one.cluster for one in texts]
    return clusters if len(set(clusters)) < len(clusters) else None


def check_labelled(texts: Sequence[LabelledText]) -> None:
    """Refuse to score or train on a test set that keeps its labels to itself."""
    unlabelled = next((one for one in texts if one.label is None), None)
    if unlabelled is not None:
        raise TaskError(f"{unlabelled.place}: there is no label; a test set without labels can only be predicted")
