"""Texts with labels, and a cache of their own for the tests of this room."""

import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder of labelled sentences: train.jsonl and dev.jsonl."""
    folder = tmp_path_factory.mktemp("texts")
    words = ["good", "fine", "bright", "kind", "dull", "poor", "grim", "cold"]
    for split, number in (("train", 24), ("dev", 9)):
        rows = [
            {"sentence": f"the play was {words[at % 8]}{' and long' * (at % 5)}", "label": int(at % 8 < 4)}
            for at in range(number)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep token files and trials of this machine out of the user's own cache."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
