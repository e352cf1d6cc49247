"""Predictions that someone wrote into a file: by id or in order, each with its place for whatever is wrong with it.

Read are {"id": prediction} as SQuAD has it, rows with an id and a prediction (.jsonl, .csv, .tsv, .parquet, a JSON
list), and plain lists in the order of the data (.txt, a JSON list of values, rows without an id).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from attnlab.data import open_source
from attnlab.data.sources.files import ending_of, read_whole_lines
from attnlab.errors import TaskError

from .reading import Row, column_of, located

ID_COLUMNS = ("id", "idx", "index", "pairID")
VALUE_COLUMNS = ("prediction", "predictions", "prediction_text", "pred", "label", "answer", "score", "text")


class HasPlace(Protocol):
    """An example that knows its id and where it stands."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def place(self) -> str:
        """Where it stands."""


@dataclass(frozen=True, slots=True)
class Given:
    """A prediction as it stands in a file."""

    value: Any
    place: str


@dataclass(frozen=True)
class PredictionFile:
    """All predictions of one file, by id; where it has no ids, the numbers of its rows from 0."""

    path: Path
    given: Mapping[str, Given]
    has_ids: bool

    def missing(self, examples: Sequence[HasPlace]) -> list[HasPlace]:
        """Return the examples without a prediction."""
        return [one for one in examples if one.id not in self.given]

    def of(self, examples: Sequence[HasPlace]) -> dict[str, Given]:
        """Return one prediction for each example; any too few or too many is an error."""
        if not self.has_ids:
            return self._in_order(examples)
        if missing := self.missing(examples):
            raise TaskError(
                f"{self.path} has no prediction for '{missing[0].id}' ({missing[0].place}), one of {len(missing)} "
                f"missing of {len(examples)}; every row needs one"
            )
        known = {one.id for one in examples}
        unknown = [key for key in self.given if key not in known]
        if unknown:
            raise TaskError(
                f"{self.given[unknown[0]].place}: no row of the data has the id '{unknown[0]}', one of {len(unknown)} "
                "that are unknown; do the predictions belong to other data?"
            )
        return dict(self.given)

    def _in_order(self, examples: Sequence[HasPlace]) -> dict[str, Given]:
        if len(self.given) != len(examples):
            raise TaskError(
                f"{self.path} has {len(self.given)} predictions without ids for {len(examples)} rows "
                f"({examples[0].place} to {examples[-1].place}); give one for each, in the same order"
            )
        return {one.id: given for one, given in zip(examples, self.given.values(), strict=True)}


def read_predictions(path: str | Path) -> PredictionFile:
    """Read a file of predictions."""
    file = Path(path)
    pairs = list(_json_pairs(file) if ending_of(file) == ".json" else _row_pairs(file))
    given: dict[str, Given] = {}
    for number, (key, one) in enumerate(pairs):
        name = str(number) if key is None else key
        if name in given:
            raise TaskError(f"{one.place}: the id '{name}' stands at {given[name].place} already; keep one of them")
        given[name] = one
    if not given:
        raise TaskError(f"{file} has no predictions; one for each row of the data is needed")
    return PredictionFile(file, given, pairs[0][0] is not None)


def _row_pairs(file: Path) -> Iterator[tuple[str | None, Given]]:
    for place, row in located(open_source(file)):
        yield _pair(row, place)


def _pair(row: Row, place: str) -> tuple[str | None, Given]:
    name = next((name for name in ID_COLUMNS if name in row), None)
    value = row[column_of(row, VALUE_COLUMNS, place)]
    return None if name is None else str(row[name]), Given(value, place)


def _json_pairs(file: Path) -> Iterator[tuple[str | None, Given]]:
    content = parse_json(file)
    if not isinstance(content, list):
        raise TaskError(f"{file}: an object of ids and predictions is needed, or a list, not {str(content)[:40]}")
    for number, entry in enumerate(content, start=1):
        place = f"{file}, row {number}"
        if isinstance(entry, tuple):
            yield str(entry[0]), Given(entry[1], place)
        elif isinstance(entry, list) and all(isinstance(pair, tuple) for pair in entry):
            yield _pair(dict(entry), place)
        elif isinstance(entry, list):
            raise TaskError(f"{place}: a prediction is needed, not a list of {len(entry)}")
        else:
            yield None, Given(entry, place)


def parse_json(file: Path) -> Any:
    """Return what a JSON file holds; an object is a list of its pairs, so that an id that comes twice is seen."""
    text = "".join(line for _, line in read_whole_lines(file))
    try:
        return json.loads(text, object_pairs_hook=list)
    except json.JSONDecodeError as error:
        row = text.count('":', 0, error.pos)
        raise TaskError(
            f"{file}, line {error.lineno}, column {error.colno}, in or after row {row}: not JSON, {error.msg} after "
            f"{text[max(0, error.pos - 40) : error.pos]!r}; was the file cut off? Write it again"
        ) from error
