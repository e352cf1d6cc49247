"""A damaged ledger is named as such, and a bug of attnlab is not taken for one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.answers.ledger_damage import explain_damage, find_damage
from attnlab.studies.answers.study_folder import LEDGER, open_record
from attnlab.studies.ledger.database import TABLES
from tests.studies.folders import BETTER, DOT, write_folder


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Write the ledger of a small study, whose triggers do not stop a vandal."""
    file = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER}) / LEDGER
    with closing(sqlite3.connect(file)) as base, base:
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            base.execute(f"DROP TRIGGER {name}")
    return file


def change(ledger: Path, command: str) -> None:
    with closing(sqlite3.connect(ledger)) as base, base:
        base.execute("PRAGMA foreign_keys = OFF")
        base.execute(command)


def test_a_whole_ledger_has_no_damage(ledger: Path) -> None:
    assert find_damage(ledger) == ""
    with pytest.raises(ZeroDivisionError), explain_damage(ledger):
        _ = 1 / 0


def test_stored_answers_are_no_damage(ledger: Path) -> None:
    with open_record(ledger.parent) as record:
        assert record.answers
    assert find_damage(ledger) == ""
    change(ledger, "UPDATE answers SET answers = '3'")
    assert "row 1 of 'answers'" in find_damage(ledger)


JSON = {
    "runs": "config", "results": "result", "pairings": "hashes", "examples": "ids", "events": "said",
}  # fmt: skip


@pytest.mark.parametrize("table", JSON)
@pytest.mark.parametrize("value", ["'{'", "'3'", "x'ff'", "1.5"])
def test_a_damaged_cell_is_named(ledger: Path, table: str, value: str) -> None:
    change(ledger, f"UPDATE {table} SET {JSON[table]} = {value}")
    assert f"row 1 of '{table}'" in find_damage(ledger)


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_table_is_named(ledger: Path, table: str) -> None:
    change(ledger, f"DROP TABLE {table}")
    assert table in find_damage(ledger)


@pytest.mark.parametrize(
    "command",
    [
        "UPDATE runs SET config = '{}'", "UPDATE runs SET arm = 'other'", "UPDATE events SET said = '[]'",
        "UPDATE results SET result = '{\"last\": 3}'", "UPDATE pairings SET hashes = '[1]'",
        "UPDATE pairings SET hashes = '{\"weights\": \"x\"}' WHERE rowid = 1",
    ],
)  # fmt: skip
def test_a_study_with_damaged_rows_is_refused_in_one_sentence(ledger: Path, command: str) -> None:
    change(ledger, command)
    with pytest.raises(StudyError, match=LEDGER), open_record(ledger.parent) as record:
        _ = record.answers, record.findings


@pytest.mark.parametrize("size", [0, 50, 1000, 5000])
def test_a_ledger_that_is_cut_off_is_refused(ledger: Path, size: int) -> None:
    ledger.write_bytes(ledger.read_bytes()[:size])
    with pytest.raises(StudyError), open_record(ledger.parent) as record:
        _ = record.answers
