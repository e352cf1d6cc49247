"""A study folder of an older attnlab is refused by every command with one sentence and status 2."""

import sqlite3
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.studies.ledger.database import VERSION

from .samples import STUDY

OLD_STUDY = STUDY.replace("[[phases.segments]]", "[[stages.phases]]").replace("[[phases]]", "[[stages]]")
OLD_STUDY = OLD_STUDY.replace("[phases.optimizer]", "[stages.optimizer]").replace(
    "phases.recall.segments", "stages.recall"
)
COMMANDS = (["compare"], ["report"], ["plan"], ["judge"], ["watch", "--port", "0"])
RENAMED = "'stages' is now called 'phases': a study has [[phases]], and a phase [[phases.segments]]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the ledger and the study file of an older format."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "study.toml").write_text(OLD_STUDY, encoding="utf-8")
    ledger = sqlite3.connect(folder / "ledger.sqlite")
    ledger.execute("PRAGMA journal_mode=WAL")
    ledger.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    ledger.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, arm TEXT, size TEXT, stage TEXT, seed INTEGER, config TEXT)"
    )
    ledger.execute("CREATE TABLE events (number INTEGER PRIMARY KEY, kind TEXT, said TEXT, at REAL)")
    ledger.execute("INSERT INTO facts VALUES ('version', ?), ('study', 'small')", (str(VERSION - 1),))
    ledger.execute("INSERT INTO events (kind, said, at) VALUES ('design', '{\"stages\": []}', 0.0)")
    ledger.commit()
    ledger.close()
    return folder


def refuse(command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that is refused; return its message."""
    assert main(command) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("attnlab: ")
    assert "Traceback" not in shown.err + shown.out
    return shown.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_an_older_ledger_is_refused(command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "ledger.sqlite").read_bytes()
    said = refuse([command[0], str(folder), *command[1:]], capsys)
    assert f"ledger.sqlite has format {VERSION - 1}, and this attnlab needs {VERSION}" in said
    assert len(said.splitlines()) <= 3
    assert (folder / "ledger.sqlite").read_bytes() == before


def test_an_older_folder_is_not_continued(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert RENAMED in refuse(["run", str(folder / "study.toml"), "--out", str(folder)], capsys)
    (folder.parent / "new.toml").write_text(STUDY, encoding="utf-8")
    said = refuse(["run", str(folder.parent / "new.toml"), "--out", str(folder)], capsys)
    assert f"has format {VERSION - 1}, and this attnlab needs {VERSION}; use the attnlab that began the study" in said
    assert not (folder / "runs").exists()


def test_an_older_study_file_is_refused_before_anything_is_planned(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert RENAMED in refuse(["plan", str(folder / "study.toml")], capsys)
    assert RENAMED in refuse(["run", str(folder / "study.toml"), "--dry-run"], capsys)
