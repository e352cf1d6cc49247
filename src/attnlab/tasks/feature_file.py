"""Features in the cache: runs and studies that encode the same examples with the same tokenizer share them.

In a file each field of the features is a column: an array of numbers, an array of tokens with the ends of its rows, or
the numbers of texts in a list without repetition.
"""

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.checksums import DamageError, seal, unseal
from attnlab.data import hash_tokenizer
from attnlab.data.cache import hash_of
from attnlab.inputs import parse_json
from attnlab.machine import cache_folder

from .batch import BatchPadding, Feature
from .language.clm import Block
from .squad.windows import ContextWindow

FORMAT = 1
FEWEST = 1000
"""Examples from which on features are stored; fewer are encoded within a second."""

CLASSES: dict[str, type[Feature]] = {cls.__name__: cls for cls in (Feature, Block, ContextWindow)}
"""The classes that are stored. Lines for MLM hold a vocabulary, and corpora are packed instead."""

Arrays = dict[str, NDArray[Any]]


def load_features(task: Any, examples: Sequence[Any], tokenizer: Any) -> list[Feature]:
    """Return what `task.features` returns, from the cache if it was made before.

    Features of few examples are not stored, nor are those of other people's tasks, whose code may change.
    """
    is_own = type(task).__module__.startswith("attnlab.")
    if tokenizer is None or not is_own or len(examples) < FEWEST:
        return list(task.features(examples, tokenizer))
    file = cache_folder() / "features" / _identify(task, examples, tokenizer)
    with suppress(OSError, DamageError):  # there is none, or a damaged one that is made again
        return read_features(file)
    features: list[Feature] = task.features(examples, tokenizer)
    with suppress(OSError):  # what cannot be stored (a full disk) is made again next time
        write_features(features, file)
    return features


def _identify(task: Any, examples: Sequence[Any], tokenizer: Any) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(repr(example).encode("utf-8", "surrogatepass"))
    return hash_of([FORMAT, version("attnlab"), repr(task), digest.hexdigest(), hash_tokenizer(tokenizer)])[:32]


def write_features(features: Sequence[Feature], file: Path) -> None:
    """Write features of one known class; if the names of their inputs or targets differ, they are left unwritten."""
    kinds = {(type(one), *one.inputs, None, *one.targets, one.padding) for one in features}
    if len(kinds) != 1 or type(features[0]) not in CLASSES.values():
        return
    first = features[0]
    arrays: Arrays = {}
    for name in _names(first):
        arrays |= _to_column(name, [_get(feature, name) for feature in features])
    index = {"class": type(first).__name__, "padding": dataclasses.astuple(first.padding), "names": list(_names(first))}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, index=_to_bytes(index), **arrays)
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.write_bytes(seal(content.getvalue()))
    aside.replace(file)


def read_features(file: Path) -> list[Feature]:
    """Read features; raise OSError if there is no file, DamageError if it is damaged."""
    with np.load(io.BytesIO(unseal(file.read_bytes(), file)), allow_pickle=False) as arrays:
        index = parse_json(arrays["index"].tobytes())
        columns = [(name, _from_column(name, arrays)) for name in index["names"]]
    kind, padding = CLASSES[index["class"]], BatchPadding(*index["padding"])
    rows = zip(*(values for _, values in columns), strict=True)
    return [_make(kind, padding, dict(zip(index["names"], row, strict=True))) for row in rows]


def _make(kind: type[Feature], padding: BatchPadding, row: Mapping[str, Any]) -> Feature:
    """Return a feature of its columns, `inputs.NAME` and `targets.NAME` among them."""
    fields: dict[str, Any] = {"inputs": {}, "targets": {}, "padding": padding}
    for name, value in row.items():
        part, _, key = name.partition(".")
        if key:
            fields[part][key] = value
        else:
            fields[name] = value
    return kind(**fields)


def _names(feature: Feature) -> Iterator[str]:
    """Yield the columns of a feature."""
    for field in dataclasses.fields(feature):
        value = getattr(feature, field.name)
        if isinstance(value, Mapping):
            yield from (f"{field.name}.{key}" for key in value)
        elif field.name != "padding":
            yield field.name


def _get(feature: Feature, name: str) -> Any:
    part, _, key = name.partition(".")
    return getattr(feature, part)[key] if key else getattr(feature, name)


def _to_column(name: str, values: Sequence[Any]) -> Arrays:
    if isinstance(values[0], str):
        texts = {text: number for number, text in enumerate(dict.fromkeys(values))}
        return {f"{name}:texts": _to_bytes(list(texts)), f"{name}:numbers": np.array([texts[text] for text in values])}
    if isinstance(values[0], np.ndarray):
        ends = np.cumsum([len(value) for value in values])
        return {f"{name}:tokens": np.concatenate(values), f"{name}:ends": ends}
    return {name: np.array(values)}


def _from_column(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
    if name in arrays:
        numbers: list[Any] = arrays[name].tolist()
        return numbers
    if f"{name}:tokens" in arrays:
        return np.split(arrays[f"{name}:tokens"], arrays[f"{name}:ends"][:-1])
    texts = parse_json(arrays[f"{name}:texts"].tobytes())
    return [texts[number] for number in arrays[f"{name}:numbers"].tolist()]


def _to_bytes(content: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(content).encode(), np.uint8)
