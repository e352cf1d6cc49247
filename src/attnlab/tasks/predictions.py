"""Predictions in a file: by id or in order, each with its place for error messages.

Formats: {"id": prediction} as SQuAD has it, rows with an id and a prediction (.jsonl, .csv, .tsv, .parquet, a JSON
list), and plain lists in the order of the data (.txt, a JSON list of values, rows without an id).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.data import open_source
from attnlab.data.sources.files import ending_of, read_lines
from attnlab.errors import TaskError
from attnlab.inputs import parse_json

from .reading import PlacedExample, Row, find_column, read_rows

ID_COLUMNS = ("id", "idx", "index", "pairID")
VALUE_COLUMNS = ("prediction", "predictions", "prediction_text", "pred", "label", "answer", "score", "text")


@dataclass(frozen=True, slots=True)
class PlacedPrediction:
    """A prediction as written in a file, and where it stands."""

    value: Any
    place: str


@dataclass(frozen=True)
class PredictionFile:
    """All predictions of one file, by id, or by the numbers of its rows from 0 if it has no ids."""

    path: Path
    given: Mapping[str, PlacedPrediction]
    has_ids: bool

    def describe_missing(self, examples: Sequence[PlacedExample]) -> str:
        """Name the first example without a prediction, and count them; empty if there is none."""
        missing = [example for example in examples if example.id not in self.given]
        if not missing:
            return ""
        first = f"'{missing[0].id}' ({missing[0].place})"
        return f"{self.path} has no prediction for {first}, one of {len(missing)} missing of {len(examples)}"

    def match(self, examples: Sequence[PlacedExample]) -> dict[str, PlacedPrediction]:
        """Return one prediction for each example; missing and unknown ones are errors."""
        if not self.has_ids:
            return self._match_in_order(examples)
        if problem := self.describe_missing(examples):
            raise TaskError(f"{problem}; every row needs one")
        known = {example.id for example in examples}
        unknown = [key for key in self.given if key not in known]
        if unknown:
            raise TaskError(
                f"{self.given[unknown[0]].place}: no row of the data has the id '{unknown[0]}', one of {len(unknown)} "
                "that are unknown; do the predictions belong to other data?"
            )
        return dict(self.given)

    def _match_in_order(self, examples: Sequence[PlacedExample]) -> dict[str, PlacedPrediction]:
        if len(self.given) != len(examples):
            raise TaskError(
                f"{self.path} has {len(self.given)} predictions without ids for {len(examples)} rows "
                f"({examples[0].place} to {examples[-1].place}); give one for each, in the same order"
            )
        return {example.id: given for example, given in zip(examples, self.given.values(), strict=True)}


def read_predictions(path: str | Path) -> PredictionFile:
    """Read a file of predictions."""
    file = Path(path)
    if ending_of(file) == ".json":
        pairs = list(_read_json_pairs(file))
    else:
        pairs = [_make_pair(row, place) for place, row in read_rows(open_source(file))]
    given: dict[str, PlacedPrediction] = {}
    for number, (key, prediction) in enumerate(pairs):
        name = str(number) if key is None else key
        if name in given:
            message = f"the id '{name}' stands at {given[name].place} already; keep one of them"
            raise TaskError(f"{prediction.place}: {message}")
        given[name] = prediction
    if not given:
        raise TaskError(f"{file} has no predictions; one for each row of the data is needed")
    return PredictionFile(file, given, pairs[0][0] is not None)


def _make_pair(row: Row, place: str) -> tuple[str | None, PlacedPrediction]:
    name = next((name for name in ID_COLUMNS if name in row), None)
    value = row[find_column(row, VALUE_COLUMNS, place)]
    return None if name is None else str(row[name]), PlacedPrediction(value, place)


def _read_json_pairs(file: Path) -> Iterator[tuple[str | None, PlacedPrediction]]:
    content = _parse_json(file)
    if not isinstance(content, list):
        raise TaskError(f"{file}: an object of ids and predictions is needed, or a list, not {str(content)[:40]}")
    for number, entry in enumerate(content, start=1):
        place = f"{file}, row {number}"
        if isinstance(entry, tuple):
            yield str(entry[0]), PlacedPrediction(entry[1], place)
        elif isinstance(entry, list) and all(isinstance(pair, tuple) for pair in entry):
            yield _make_pair(dict(entry), place)
        elif isinstance(entry, list):
            raise TaskError(f"{place}: a prediction is needed, not a list of {len(entry)}")
        else:
            yield None, PlacedPrediction(entry, place)


def _parse_json(file: Path) -> Any:
    """Parse a JSON file with objects as lists of pairs, so that a repeated id is detected."""
    text = "".join(line for _, line in read_lines(file, keep_ends=True))
    try:
        return parse_json(text, object_pairs_hook=list)
    except json.JSONDecodeError as error:
        row = text.count('":', 0, error.pos)
        raise TaskError(
            f"{file}, line {error.lineno}, column {error.colno}, in or after row {row}: not JSON, {error.msg} after "
            f"{text[max(0, error.pos - 40) : error.pos]!r}; was the file cut off? Write it again"
        ) from error
