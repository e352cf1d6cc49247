"""What docs/training.md shows runs: its Python, and its commands one after another in one folder."""

import re
import shlex
from pathlib import Path

import pytest

from attnlab.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks("python"):
        exec(compile(block, "docs/training.md", "exec"), {"__name__": "page"})
    assert (tmp_path / "run" / "result.json").exists()


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line) for line in blocks("sh")[0].splitlines()]
    assert [main(words[1:]) for words in commands] == [0, 0]
    assert "finished at step 20 of 20" in capsys.readouterr().out
