"""The identity of a run: a hash of all that determines its result; of files the content counts, not the path."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from transformers import AutoConfig

from attnlab.checksums import SUMS, hash_file
from attnlab.data import load_tokenizer, open_source
from attnlab.data.cache import hash_once
from attnlab.data.tokenizers.training import TOKENIZER_KINDS
from attnlab.errors import DataError, PretrainedError, StudyError
from attnlab.inputs import expand_path
from attnlab.mechanisms import parse_line
from attnlab.pretrained import load_pretrained
from attnlab.training import RunSpec
from attnlab.training.job.build import choose_split
from attnlab.training.job.weights import silence_transformers
from attnlab.training.record.folder import TRACKERS, WATCHING
from attnlab.training.spec import WITHOUT_EFFECT, DataSource

from ..file.design import Design, Size

RESULTS_VERSION = 3
"""Increased when the same settings give other results, so that older runs are not reused."""
MARKS = (":best", ":last")
IGNORED = ("lock", "log.txt", WATCHING, SUMS)
"""Files of a run's folder that do not affect its weights."""
UNREADABLE = (DataError, PretrainedError, StudyError, OSError, ValueError)
Hashes = dict[str, str]
"""Hashes of the contents of files, by part."""


def compute_id(run: RunSpec, parent: str | None, contents: Mapping[str, str]) -> str:
    """Return the hash of all that determines a run's result and differs from the defaults."""
    config = run.model_dump(mode="json", exclude=WITHOUT_EFFECT, exclude_defaults=True)
    for name in ("train", "dev", "tune"):
        config.get("data", {}).pop(name, None)
    for place, name in (("start", "checkpoint"), ("data", "tokenizer")):
        if name in contents:
            config.get(place, {}).pop(name, None)
    for segment in config.get("segments", []):
        segment.pop("name", None)
    content = [RESULTS_VERSION, config, run.evaluate_every, parent, dict(contents)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def hash_source(source: DataSource) -> Hashes:
    """Return the hash of the content of each split of a source."""
    dev = source.dev
    if dev is None and choose_split(source.train, "dev") is not None:
        dev = source.train  # what a run is evaluated on by default
    named = {"train": source.train, "dev": dev, "tune": source.tune}
    # What trials are evaluated on is the dev split of its source, if that has splits.
    splits = {"train": "train", "dev": "dev", "tune": "dev"}
    return {
        part: open_source(name, split=choose_split(name, splits[part])).hash
        for part, name in named.items() if name is not None
    }  # fmt: skip


def hash_size(size: Size) -> Hashes:
    """Return the hashes of the files a model starts from; names of the hub have none."""
    hashes = {}
    for what, name in (("checkpoint", size.checkpoint), ("tokenizer", size.tokenizer)):
        if (files := find_files(name)) is not None:
            path, mark = files
            hashes[what] = _hash_files(path) + mark.removesuffix(":last")
    return hashes


def find_files(name: str | None) -> tuple[Path, str] | None:
    """Return the path that a name stands for and its mark, such as `:best`; None for a name of the hub."""
    mark = next((mark for mark in MARKS if name is not None and name.endswith(mark)), "")
    path = None if name is None else expand_path(name.removesuffix(mark)).resolve()
    return None if path is None or not path.exists() else (path, mark)


def hash_stages(mechanism: str, plugins: Sequence[str]) -> Hashes:
    """Return the hashes of the plugin files, if a mechanism has a stage that is not part of attnlab."""
    stages = parse_line(mechanism).list_written_stages()
    user_stages = [stage for stage in stages if not stage.origin.startswith("attnlab.")]
    if user_stages and not plugins:
        raise StudyError(
            f"'{user_stages[0]}' is a stage of your own, which the processes that train do not know; put it into a "
            "file, and give that as --plugin FILE.py (plugins= in Python)"
        )
    return {f"plugin {number}": _hash_files(Path(file)) for number, file in enumerate(plugins) if user_stages}


def hash_inputs(
    study: Design, sources: Mapping[str, DataSource], phases: Mapping[str, str]
) -> tuple[dict[str, Hashes], dict[str, Hashes]]:
    """Return the hashes of all sources and sizes, or raise one error that lists all inputs that cannot be read.

    phases: a phase that reads each source.
    """
    data: dict[str, Hashes] = {}
    sizes: dict[str, Hashes] = {}
    missing: list[str] = []
    for name, phase in phases.items():
        try:
            data[name] = hash_source(sources[name])
        except UNREADABLE as error:
            what = f"the data '{name}' of phase '{phase}' ({sources[name].train})"
            missing.append(f"{what}: {_cut(error)}; {_advise(name, sources[name])}")
    for name, size in study.sizes.items():
        try:
            sizes[name] = _open_size(size)
        except UNREADABLE as error:
            advice = f"give a folder: --set sizes.{name}.checkpoint=PATH or --set sizes.{name}.tokenizer=PATH"
            missing.append(f"the model of size '{name}': {_cut(error)}; {advice}")
    if missing:
        raise StudyError("\n".join(["inputs of the study cannot be read:", *missing]))
    return data, sizes


def _advise(name: str, source: DataSource) -> str:
    if str(source.train).startswith("embedded:"):
        return f"correct [data.{name}] of the study"
    return f"give its path on this machine: --data {name}=PATH"


def _cut(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".;")


def _open_size(size: Size) -> Hashes:
    """Return the hashes of a size; a model that cannot be opened is an error now, not in every run."""
    hashes = hash_size(size)
    with silence_transformers():
        if size.tokenizer is not None and size.tokenizer.partition(":")[0] not in TOKENIZER_KINDS:
            load_tokenizer(size.tokenizer)
        if size.checkpoint is not None and "checkpoint" not in hashes:
            load_pretrained(AutoConfig, size.checkpoint)
            if size.tokenizer is None:
                load_tokenizer(size.checkpoint)
    return hashes


def _hash_files(place: Path) -> str:
    files = [file for file in sorted(place.rglob("*")) if file.is_file()] if place.is_dir() else [place]
    total = hashlib.sha256()
    try:
        for file in files:
            if file.name not in IGNORED and TRACKERS not in file.relative_to(place).parts[:1]:
                total.update(f"{file.relative_to(place)} {hash_once(file, hash_file)}\n".encode())
    except OSError as error:
        raise StudyError(f"cannot read {error.filename}, which the study starts from: {error.strerror}") from error
    return total.hexdigest()
