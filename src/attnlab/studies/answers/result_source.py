"""Something to compare with other results: a study's folder, a run's folder, a file of results, or a list of numbers.

Each becomes cells of a table, with what is recorded of how they were made: data, code, settings and the evaluation set.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError, StudyError
from attnlab.inputs import check_regular, expand_path
from attnlab.training.plain import decode_nonfinite
from attnlab.training.record.files import read_json

from ..integrity import Cell, TableHints, read_table
from ..integrity.tables.figure import parse_number
from ..integrity.tables.formats.files import find_result_files
from ..integrity.tables.table import RunPredictions
from .study_folder import LEDGER, Record, open_record

VERSIONS = ("attnlab", "torch", "transformers", "python", "processor", "commit")
RESULT, CONFIG, PAIRING = "result.json", "config.json", "pairing.json"
LIST = "a list of numbers"
Facts = Mapping[str, str]
RunKey = tuple[str, str, str]
"""Arm, group and seed."""


@dataclass(frozen=True)
class ResultSource:
    """Results from one place: cells by arm, group, metric and seed, and what is recorded of them.

    data: hashes of the data by name. versions: of the code. settings: of each run's training, by path. hashes: of what
    each run shares with runs of the same seed, its evaluation set included. smallest: the smallest difference worth
    having, by metric, if a study declared it. obstacles: why arms cannot be compared, such as a leak. What is not
    recorded is empty.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...]
    data: Facts = field(default_factory=dict)
    versions: Facts = field(default_factory=dict)
    settings: Mapping[RunKey, Facts] = field(default_factory=dict)
    hashes: Mapping[RunKey, Mapping[str, Any]] = field(default_factory=dict)
    smallest: Mapping[str, float] = field(default_factory=dict)
    obstacles: Facts = field(default_factory=dict)
    predictions: tuple[RunPredictions, ...] = ()
    layout: tuple[str, ...] = ()
    has_seeds: bool = True

    @property
    def arms(self) -> list[str]:
        """The names of its arms, in order."""
        return list(dict.fromkeys(cell.arm for cell in self.cells))

    @property
    def is_list(self) -> bool:
        """Whether it is a list of numbers."""
        return self.kind == LIST


def read_source(text: str, number: int, hints: TableHints | None = None) -> ResultSource:
    """Read what one argument names. number: its place, from 1, which names a list without a name.

    hints: what the user says of files of results that they do not say themselves.
    """
    # A list may be too long for the name of a file.
    if not os.path.exists(text) and (numbers := read_list(text)):
        name, values = numbers
        name = name or f"list {number}"
        cells = [
            Cell(name, "", "value", str(n), None, value, written, f"{name}, number {n}")
            for n, (written, value) in enumerate(values, start=1)
        ]
        return ResultSource(name, LIST, tuple(cells), has_seeds=False)
    path = expand_path(text)
    if path.is_dir():
        return _read_folder(text, path, hints)
    check_regular(path)
    return _read_files(text, "a file of results", [str(path)], hints)


def _read_files(text: str, kind: str, paths: Sequence[str], hints: TableHints | None) -> ResultSource:
    """Read one or several files as one table."""
    table = read_table(paths, hints=hints)
    return ResultSource(
        text, kind, table.cells, predictions=table.predictions, layout=table.layout,
        settings={run: dict(budget) for run, budget in table.budgets.items() if budget}, has_seeds=table.has_seeds,
    )  # fmt: skip


def read_list(text: str) -> tuple[str, list[tuple[str, float | None]]] | None:
    """Read `0.81,0.82,…` or `name=0.81,0.82,…`, where nan is a run that failed; None if the text is no list."""
    name, sign, numbers = text.rpartition("=")
    words = [word.strip() for word in numbers.replace(";", ",").split(",")]
    values = [(word, parse_number(word)) for word in words]
    if sign and words == [""]:
        raise RequestError(f"'{text}' has no scores; give one for each seed, such as {name or 'name'}=0.81,0.82,0.83")
    if sign and name and len(values) == 1 and values[0][1] is not None:
        raise RequestError(
            f"'{text}' is the score of one seed; give one for each seed, such as {name}={words[0]},…, since a single "
            "score shows no spread. A mean with its SD is given as a file, such as a row of n_seeds, acc_mean, acc_std"
        )
    if len(words) < 2 or all(value is None for _, value in values):
        return None
    wrong = next((word for word, value in values if value is None and word.lower() != "nan"), None)
    if wrong is not None:
        raise RequestError(
            f"'{wrong}' in the list '{text}' is not a number; a run that failed is nan, and there is no file of "
            "this name"
        )
    return name.strip(), values


def _read_folder(text: str, path: Path, hints: TableHints | None) -> ResultSource:
    if (path / LEDGER).exists():
        with open_record(path) as record:
            return _read_study(text, record)
    if (path / RESULT).exists() and (path / CONFIG).exists():
        return _read_run(text, path)
    if files := find_result_files(path):
        return _read_files(text, "a folder of lm-eval's results", files, hints)
    raise StudyError(
        f"{text} holds no study: it has no {LEDGER}; nor a run, which has a {RESULT}; nor results*.json of lm-eval. A "
        "folder must hold one of these; other results are given as files, such as results.csv"
    )


def _read_study(name: str, record: Record) -> ResultSource:
    if not record.is_whole:
        raise RequestError(
            f"{name} has {record.num_ended} of {len(record.runs)} runs ended; it is compared when all have, since "
            "comparing before would be an undeclared look"
        )
    cells: list[Cell] = []
    hashes: dict[RunKey, Mapping[str, Any]] = {}
    settings: dict[RunKey, Facts] = {}
    smallest: dict[str, float] = {}
    for phase in record.design.phases:
        for size in record.design.sizes:
            table = record.table(phase.name, size)
            group, metric = f"{phase.name}, {size}", table.metric
            if metric is None:
                continue
            if phase.smallest is not None:
                # Two phases may have the same metric; the stricter threshold holds for both.
                smallest[metric] = min(float(phase.smallest), smallest.get(metric, float(phase.smallest)))
            for arm, runs in table.runs.items():
                for seed, value in table.values(arm, metric).items():
                    place, written = f"{name}: {runs[seed].title}", "" if value is None else repr(value)
                    cells.append(Cell(arm, group, metric, str(seed), None, value, written, place))
                    hashes[arm, group, str(seed)] = table.list_shared_hashes(arm, seed)
                    settings[arm, group, str(seed)] = flatten_settings(runs[seed].run.config)
    data = {f"{source}.{split}": hash for source, splits in record.data.items() for split, hash in splits.items()}
    start = record.starts[-1] if record.starts else {}
    versions = {key: str(start[key]) for key in VERSIONS if start.get(key)}
    return ResultSource(
        name, "a study", tuple(cells), data, versions, settings, hashes, smallest, dict(record.obstacles)
    )


def _read_run(name: str, path: Path) -> ResultSource:
    result, config = (read_json(path / file) for file in (RESULT, CONFIG))
    pairing = read_json(path / PAIRING) if (path / PAIRING).exists() else {}
    last = result.get("last") or {}
    metric = last.get("primary")
    if metric is None:
        raise RequestError(f"{name} is a run without an evaluation; give its task held-out data, data.dev")
    value, seed, arm = decode_nonfinite(last["figures"])[metric], str(config.get("seed", 1)), Path(name).name
    cell = Cell(arm, "", metric, seed, None, float(value), repr(value), f"{name}, {metric}")
    hashes = {"evaluation": pairing.get("evaluation", ""), "training": pairing.get("batches", "")}
    key = arm, "", seed
    return ResultSource(
        name, "a run", (cell,), settings={key: flatten_settings(config)}, hashes={key: hashes if pairing else {}}
    )


def flatten_settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return settings by path, without the seed and without the paths of data, whose content has a hash."""
    return {path: text for path, text in _flatten(config, "") if path != "seed" and not path.startswith("data.")}


def _flatten(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flatten(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value, start=1):
            yield from _flatten(item, f"{path}.{number}")
    else:
        yield path, json.dumps(value, ensure_ascii=False).strip('"')
