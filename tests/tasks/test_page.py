"""The code of docs/tasks.md runs, and its table names every task."""

from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.tasks import TASKS
from tests.test_pages import blocks, commands

PAGE = (Path(__file__).parent.parent.parent / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_the_pages_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tokenizers that are trained go into the user's cache, which a test must not fill.
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "the block of docs/tasks.md", "exec"), {"__name__": "page"})


def test_the_page_names_every_task() -> None:
    assert [name for name in TASKS if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("arguments", commands(PAGE), ids=" ".join)
def test_the_pages_commands_run(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0
