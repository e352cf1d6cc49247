"""The code and the commands of docs/data.md run, and what it points at is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.data import PROBES, SETS, STEPS
from attnlab.data.sources.rows import READERS
from tests.test_pages import blocks, commands

PATH = Path(__file__).parent.parent.parent / "docs" / "data.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_the_pages_code_runs() -> None:
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "a block of docs/data.md", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("arguments", commands(PAGE), ids=" ".join)
def test_the_pages_commands_run(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0


@pytest.mark.parametrize("name", [*SETS, *PROBES, *STEPS, *READERS])
def test_the_page_names_everything_there_is(name: str) -> None:
    assert re.search(rf"`{re.escape(name)}[`(]", PAGE)


def test_pictures_are_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (PATH.parent / target).exists()
