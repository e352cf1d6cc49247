"""What a run is known by: a hash of all that determines its result, of files their content and never their place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from attnlab.data import open_source
from attnlab.errors import StudyError
from attnlab.mechanisms import Mechanism
from attnlab.training import RunSpec
from attnlab.training.build import split_in
from attnlab.training.spec import NOT_DECIDING, Source

from ..file.design import Size

RESULTS_VERSION = 2
"""Raised when the same settings give other results: runs of another version are other runs."""
PASSING = ("lock", "log.txt")
"""Files of a run's folder that say nothing of its weights."""


def id_of(run: RunSpec, parent: str | None, contents: Mapping[str, str]) -> str:
    """Return the id of a run: a hash of all that determines its result and differs from the defaults."""
    config = run.model_dump(mode="json", exclude=NOT_DECIDING, exclude_defaults=True)
    for name in ("train", "dev"):
        config.get("data", {}).pop(name, None)
    for place, name in (("start", "checkpoint"), ("data", "tokenizer")):
        if name in contents:
            config.get(place, {}).pop(name, None)
    for segment in config.get("segments", []):
        segment.pop("name", None)
    content = [RESULTS_VERSION, config, run.evaluate_every, parent, dict(contents)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def contents_of_source(source: Source) -> dict[str, str]:
    """Return the hashes of what a source holds, so that other content under the same name is another run."""
    dev = source.dev
    if dev is None and split_in(source.train, "dev") is not None:
        dev = source.train  # what a run is evaluated on where nothing is named
    named = {"train": source.train, **({} if dev is None else {"dev": dev})}
    return {split: open_source(name, split=split_in(name, split)).hash for split, name in named.items()}


def contents_of_size(size: Size) -> dict[str, str]:
    """Return the hashes of the files a model starts from; names of the hub stand for themselves."""
    found = {}
    for what, name in (("checkpoint", size.checkpoint), ("tokenizer", size.tokenizer)):
        folder = None if name is None else Path(name.removesuffix(":best").removesuffix(":last")).expanduser()
        if folder is not None and folder.exists():
            mark = ":best" if str(name).endswith(":best") else ""
            found[what] = hash_of_files(folder) + mark
    return found


def contents_of_stages(mechanism: str, plugins: Sequence[str]) -> dict[str, str]:
    """Return the hash of the files that stages of the user's own come from, where a mechanism has any."""
    own = [one for one in Mechanism.parse(mechanism).written() if not type(one).__module__.startswith("attnlab.")]
    if own and not plugins:
        raise StudyError(
            f"'{own[0]}' is a stage of your own, which the processes that train do not know; put it into a file, and "
            "give that as --plugin FILE.py (plugins= in Python)"
        )
    return {f"plugin {number}": hash_of_files(Path(file)) for number, file in enumerate(plugins) if own}


def hash_of_files(place: Path) -> str:
    """Return the hash of a file, or of all files of a folder by their names."""
    files = [file for file in sorted(place.rglob("*")) if file.is_file()] if place.is_dir() else [place]
    total = hashlib.sha256()
    try:
        for file in files:
            if file.name not in PASSING:
                with file.open("rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
                total.update(f"{file.relative_to(place)} {digest}\n".encode())
    except OSError as error:
        raise StudyError(f"cannot read {error.filename}, which the study starts from: {error.strerror}") from error
    return total.hexdigest()
