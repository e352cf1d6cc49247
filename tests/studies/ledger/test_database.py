"""The ledger: only ever added to, together or not at all, its own file and format, on a local disk, one writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attnlab.errors import AttnlabError, StudyError
from attnlab.studies.ledger.database import TABLES, VERSION, Delivery, Ledger, RunRow
from attnlab.training.record.lock import lock_folder

from ..samples import quiet, study

ROW = RunRow("r1", "dot", "tiny", "recall", 1, {"task": "mqar"})


LINES = [{"kind": "train", "step": step, "loss": 1.0} for step in (1, 2)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    found = Ledger(tmp_path / "ledger.sqlite")
    found.add_runs([ROW])
    yield found
    found.close()


def delivery(attempt: int, **changes: object) -> Delivery:
    """Return what a run leaves."""
    values = {"metrics": LINES, "pairing": {"batches": "b"}, "ids": ["a", "b"], "scores": {"accuracy": [0.0, 1.0]}}
    return Delivery("r1", attempt, "finished", {"last": None}, **{**values, **changes})  # type: ignore[arg-type]


def test_what_was_delivered_is_there_after_opening_again(ledger: Ledger) -> None:
    ledger.deliver(delivery(ledger.begin("r1", "here")))
    ledger.close()
    again = Ledger(ledger.path, is_new=False)
    assert again.runs() == [ROW]
    assert again.results()["r1"].status == "finished"
    assert [line["step"] for line in again.lines("r1", "train")] == [1, 2]
    assert again.pairing("r1") == {"batches": "b"}
    found = again.scores("r1", "accuracy")
    assert found is not None
    assert again.examples("r1") == (["a", "b"], None)
    assert np.array_equal(found, [0.0, 1.0])
    assert again.scores("r1", "loss") is None
    again.close()


@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_changed_removed_or_replaced(table: str, ledger: Ledger) -> None:
    ledger.deliver(delivery(ledger.begin("r1", "here")))
    ledger.fail(1, "why")
    ledger.give_up("r1", "why")
    ledger.add_answers("basis", "[]")
    ledger.add_event("started", "now")
    ledger.add_audit("dot | softmax", True, True, [])
    column = ledger.execute(f"SELECT * FROM {table}").description[-1][0]
    for command in (f"UPDATE {table} SET {column} = 'x'", f"DELETE FROM {table}"):
        with pytest.raises(StudyError, match="only ever added to"):
            ledger.execute(command)
    with pytest.raises(StudyError, match="only ever added to"):
        ledger.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    assert len(ledger.execute(f"SELECT * FROM {table}").fetchall()) >= 1


def test_a_run_is_delivered_once(ledger: Ledger) -> None:
    ledger.deliver(delivery(ledger.begin("r1", "here")))
    ledger.deliver(delivery(ledger.begin("r1", "again"), scores={"accuracy": [1.0, 1.0]}))
    found = ledger.scores("r1", "accuracy")
    assert found is not None
    assert found.tolist() == [0.0, 1.0]
    assert len(ledger.lines("r1", "train")) == 2


def test_a_delivery_comes_in_whole_or_not_at_all(ledger: Ledger) -> None:
    with pytest.raises(StudyError, match="UNIQUE"):
        ledger.deliver(delivery(ledger.begin("r1", "here"), metrics=[*LINES, LINES[0]]))
    assert ledger.results() == {}
    assert ledger.lines("r1", "train") == []
    with pytest.raises(StudyError, match="FOREIGN KEY"):
        ledger.begin("nobody", "here")


def test_what_is_on_the_disk_is_what_a_reader_finds_meanwhile(ledger: Ledger) -> None:
    assert ledger.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger.execute("PRAGMA synchronous").fetchone() == (2,)
    reader = Ledger(ledger.path, is_new=False)
    with ledger.transaction():
        ledger.add_event("a", "b")
        assert reader.events("a") == []
    assert reader.events("a") == ["b"]
    reader.close()


def test_a_fact_is_noted_once_and_for_all(ledger: Ledger) -> None:
    ledger.note_fact("study", "one")
    ledger.note_fact("study", "one")
    with pytest.raises(StudyError, match="holds another study: its study is 'one', not 'other'"):
        ledger.note_fact("study", "other")


def test_other_files_are_no_ledger(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    file.write_bytes(b"not a database, but long enough to be looked at as one" * 50)
    with pytest.raises(StudyError, match="cannot be used as a ledger: file is not a database; move it away"):
        Ledger(file)
    file.unlink()
    with pytest.raises(StudyError, match="holds no study"):
        Ledger(file, is_new=False)
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE runs (x)")
    other.close()
    with pytest.raises(StudyError, match="is not a ledger but another database"):
        Ledger(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(StudyError, match="unable to open"):
        Ledger(file)


def test_another_format_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.close()
    monkeypatch.setattr("attnlab.studies.ledger.database.VERSION", VERSION + 1)
    with pytest.raises(StudyError, match=f"has format {VERSION}, and this attnlab needs {VERSION + 1}"):
        Ledger(ledger.path)


def test_a_ledger_whose_making_was_cut_short_is_made(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").touch()
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.fact("version") == str(VERSION)
    ledger.close()


def test_a_second_process_in_one_folder_is_refused(tmp_path: Path) -> None:
    caught: list[AttnlabError] = []

    def try_too() -> None:
        try:
            study().run(tmp_path / "out", say=quiet)
        except AttnlabError as error:
            caught.append(error)

    with lock_folder(tmp_path / "out"):
        second = threading.Thread(target=try_too)
        second.start()
        second.join()
    assert "another process works in" in str(caught[0])
    assert not (tmp_path / "out" / "ledger.sqlite").exists()
