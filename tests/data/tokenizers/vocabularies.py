"""Small vocabularies as files, in the formats of BERT and GPT-2."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "una", "##ffa", "##ble", "hello", ",", "e"]
BYTES = {"<|endoftext|>": 0, "a": 1, "b": 2, "Ġ": 3, "ab": 4, "Ġab": 5}
MERGES = "#version: 0.2\na b\nĠ ab\n"


def write_vocabulary(folder: Path, tokens: list[str], name: str = "vocab.txt") -> Path:
    (folder / name).write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return folder / name


def write_bytes(folder: Path, prefix: str = "") -> Path:
    (folder / f"{prefix}vocab.json.gz").write_bytes(gzip.compress(json.dumps(BYTES).encode()))
    (folder / f"{prefix}merges.txt").write_text(MERGES, encoding="utf-8")
    return folder / f"{prefix}vocab.json.gz"
