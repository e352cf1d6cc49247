"""The code of docs/studies.md runs, and its tables name every setting and every table of the ledger."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.studies.file.design import Design, Phase, SearchSettings, Size
from attnlab.studies.ledger.database import TABLES
from attnlab.training.spec import DataSource
from tests.test_pages import blocks, commands

PAGE = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("here")
def test_the_pages_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file, *parts = blocks(PAGE, "toml")
    search = next(part["search"] for part in map(tomllib.loads, parts) if "search" in part)
    SearchSettings.model_validate(search)
    Path("study.toml").write_text(file, encoding="utf-8")
    for arguments in commands(PAGE):
        if "other-study" in arguments:
            shutil.copytree("study", "other-study")
        assert main(arguments) == 0, arguments
    shown = capsys.readouterr().out
    assert "15 runs" in shown
    assert "every score, so these may be copies of the same results" in shown
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "the block of docs/studies.md", "exec"), {"__name__": "page"})
    assert "bypass TOO FEW SEEDS (n < 5)" in capsys.readouterr().out


def test_the_page_names_every_setting_and_every_table() -> None:
    names = [*Size.model_fields, *DataSource.model_fields, *Phase.model_fields, *Design.model_fields, *TABLES]
    assert [name for name in names if name not in PAGE] == []
