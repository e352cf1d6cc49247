"""The code of docs/install.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.heads.tokenizers import word_pieces
from tests.install.models import build
from tests.test_pages import blocks

PAGE = (Path(__file__).parent.parent.parent / "docs" / "install.md").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)
    assert len(named) > 15
    for file, name in named:
        assert f"def {name}(" in (Path(__file__).parent / file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_the_pages_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build("bert").save_pretrained(tmp_path / "bert")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page", "MODEL": "bert", "TOKENIZER": word_pieces()}
    code = blocks(PAGE, "python")
    assert len(code) == 5
    for block in code:
        exec(compile(block, "a block of docs/install.md", "exec"), names)
    assert (tmp_path / "with-bypass" / "attnlab.safetensors").exists()
