"""The part of a file that is held out if there is no other text to evaluate on: its last documents.

The two parts are written to the user's cache, so that everything else reads ordinary files.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import DataError
from attnlab.inputs import parse_json
from attnlab.machine import cache_folder

from ..cache import hash_of, write_folder
from .rows import Unit
from .source import Source, open_source

SHARE = 10
"""One of this many documents is held out …"""
MAX_HELD_OUT = 1000
"""… and at most this many: enough for an interval, and quick to evaluate."""
FEW = 10
"""A file with fewer documents is cut into pieces, so that a single long line can be split too."""
PIECE = 600
"""Characters of a piece, about 100 English words."""


@dataclass(frozen=True)
class HeldOut:
    """The two parts of a file, as files, and the number of documents of each."""

    train: str
    dev: str
    num_train: int
    num_dev: int
    is_cut: bool
    """Whether documents were cut into pieces."""

    def describe(self, name: str) -> str:
        """Say what was held out of a file."""
        unit = f"pieces of {PIECE} characters" if self.is_cut else "documents"
        return (
            f"only a file to train on was given, {name}: of its {self.num_train + self.num_dev:,} "
            f"{unit} the last {self.num_dev:,} {'is' if self.num_dev == 1 else 'are'} held out for evaluation and not "
            "trained on"
        )


def hold_out(name: str, column: str | None = None, unit: Unit = "line") -> HeldOut:
    """Split a file into documents to train on and the last ones, which are held out; return the two files."""
    source = open_source(name, column=column, unit=unit)
    folder = cache_folder() / "holdout" / hash_of([source.identity, SHARE, MAX_HELD_OUT, FEW, PIECE])[:32]
    index = folder / "index.json"
    if not index.exists():
        _write_parts(source, folder)
    counts = parse_json(index.read_bytes())
    num_train, num_dev = counts["counts"]
    return HeldOut(
        str(folder / counts["train"]), str(folder / counts["dev"]), num_train, num_dev, bool(counts["is_cut"])
    )


def _write_parts(source: Source, folder: Path) -> None:
    total = sum(1 for _ in source.documents())
    num_pieces = sum(1 for _ in _list_units(source, True)) if total < FEW else total
    is_cut, total = num_pieces > total, num_pieces
    if total < 2:
        raise DataError(
            f"{source.name} has a single document of at most {PIECE} characters, which cannot be both trained on and "
            "held out; give more text, or another file to evaluate on"
        )
    num_dev = min(max(1, total // SHARE), MAX_HELD_OUT)
    stem = Path(source.name).name.partition(".")[0]
    ending = "txt" if source.kind == "text" and source.layout.unit == "line" else "jsonl"
    names = {part: f"{stem}.{part}.{ending}" for part in ("train", "dev")}
    with write_folder(folder) as temporary:
        units = _list_units(source, is_cut)
        for part, count in (("train", total - num_dev), ("dev", num_dev)):
            with (temporary / names[part]).open("w", encoding="utf-8", newline="\n") as file:
                for _ in range(count):
                    text = next(units)
                    file.write((text if ending == "txt" else json.dumps({"text": text})) + "\n")
        index = {**names, "counts": [total - num_dev, num_dev], "is_cut": is_cut}
        (temporary / "index.json").write_text(json.dumps(index), encoding="utf-8")


def _list_units(source: Source, is_cut: bool) -> Iterator[str]:
    for text in source.documents():
        yield from _cut(text) if is_cut else (text,)


def _cut(text: str) -> Iterator[str]:
    """Cut a text at white space into pieces of at most `PIECE` characters; a longer word is cut inside."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text) and (space := text.rfind(" ", start + 1, end)) > 0:
            end = space
        if piece := text[start:end].strip():
            yield piece
        start = end
