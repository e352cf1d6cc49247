"""JSON files of results: records, scores by arm, one record per file or line, and lm-eval's results."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attnlab.errors import RequestError
from attnlab.inputs import is_whole_number, parse_json

from ..metrics import recognise_metric, split_words
from ..rows import TextTable, make_table
from .lm_eval import is_lm_eval, read_lm_eval

Record = dict[str, str]
MAX_DEPTH = 4
SCORES = frozenset({"score", "scores", "value", "values", "result", "results", "seeds", "runs"})
"""Names of an object that holds a score for each seed."""


def is_json(text: str) -> bool:
    """Tell whether a text is JSON, or lines of JSON."""
    return text.lstrip()[:1] in ("{", "[")


def read_json(path: str, text: str) -> TextTable:
    """Read a JSON file as a table."""
    content = _parse(path, text)
    if is_lm_eval(content):
        return read_lm_eval(path, content)
    is_text = isinstance(content, Mapping) and content and all(isinstance(it, str) for it in content.values())
    if is_text:
        raise RequestError(
            f"'{path}' holds texts and no numbers, like predictions without labels; attnlab score TASK --data FILE "
            f"--predictions {path} gives their score"
        )
    records = [record for record in _list_records(path, content) if record]
    header = list(dict.fromkeys(name for record in records for name in record))
    rows: list[tuple[int | str, list[str]]] = [
        (f"record {number}", [record.get(name, "") for name in header])
        for number, record in enumerate(records, start=1)
    ]
    if len(header) == 1:
        header, rows = ["file", *header], [(place, [path, *row]) for place, row in rows]
    if not rows:
        raise RequestError(
            f'\'{path}\' holds no records with numbers; give [{{"arm": …, "seed": …, "accuracy": …}}, …]'
        )
    return make_table(path, header, rows, "JSON")


def _parse(path: str, text: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            return [parse_json(line) for line in lines]
        except (ValueError, RecursionError):
            raise RequestError(f"'{path}' begins like JSON and cannot be read as it: {error}") from error


def _list_records(path: str, content: Any) -> Iterator[Record]:
    """Yield one record for each run: of a list of objects, of one object, or of lists of scores by arm."""
    if isinstance(content, list):
        if not all(isinstance(item, Mapping) for item in content):
            raise RequestError(
                f'\'{path}\' is a list of other things than objects; each run is {{"arm": …, "seed": …, …}}'
            )
        for item in content:
            yield from _split_seeds(item)
    elif isinstance(content, Mapping) and content and all(_is_scores(value) for value in content.values()):
        for arm, scores in content.items():
            seeds = scores.items() if isinstance(scores, Mapping) else enumerate(scores, start=1)
            for seed, value in seeds:
                yield {"arm": str(arm), "seed": str(seed), "value": _write(value)}
    elif isinstance(content, Mapping) and len(content) == 1 and isinstance(next(iter(content.values())), list):
        yield from _list_records(path, next(iter(content.values())))
    elif isinstance(content, Mapping):
        yield from _split_seeds(content)
    else:
        raise RequestError(f"'{path}' is JSON without any table: a list of runs, or scores by arm, is needed")


def _split_seeds(item: Mapping[str, Any]) -> Iterator[Record]:
    """Yield a record for each seed of an object such as {"method": …, "scores": {"0": …, "1": …}}, or the object."""
    by_seed = {name: value for name, value in item.items() if _has_seeds(name, value)}
    others = _flatten({name: value for name, value in item.items() if name not in by_seed})
    if not by_seed or "seed" in others:
        yield _flatten(item)
        return
    for seed in dict.fromkeys(seed for scores in by_seed.values() for seed in scores):
        scores = {("value" if name in SCORES else name): _write(of.get(seed)) for name, of in by_seed.items()}
        yield {**others, "seed": seed, **scores}


def _has_seeds(name: str, value: Any) -> bool:
    """Tell whether an object holds a score for each seed: its keys are whole numbers. Scores by class are none."""
    is_named = name in SCORES or (recognise_metric(name) and "class" not in split_words(name))
    return bool(is_named) and isinstance(value, Mapping) and _is_scores(value) and all(map(is_whole_number, value))


def _is_scores(value: Any) -> bool:
    items: Sequence[Any] = (
        list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    )
    return bool(items) and all(item is None or _is_number(item) for item in items)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flatten(item: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Record:
    record: Record = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            record |= _flatten(value, f"{prefix}{name}.", depth + 1)
        elif value is None or isinstance(value, int | float | str):
            record[f"{prefix}{name}"] = _write(value)
    return record


def _write(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value.strip() if isinstance(value, str) else repr(value)
