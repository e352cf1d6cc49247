"""A ledger whose bytes have changed is refused with one sentence, and one that cannot be written can be read."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import AttnlabWarning, StudyError
from attnlab.reports.study.report import write_report
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.ledger.connection import DIGESTS
from attnlab.studies.ledger.database import Delivery, Ledger, RunRow
from tests.reports.study.made import BASE, HIGH, Made

NOBODY = 65534
LINES = [{"kind": "train", "step": step, "name": name, "loss": 1.5} for step in (2, 10) for name in ("b", "ä", "")]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a row in every table, closed."""
    path = tmp_path_factory.mktemp("study") / "ledger.sqlite"
    with closing(Ledger(path)) as ledger:
        ledger.add_runs([RunRow(f"r{number}", "dot", "tiny", "recall", number, {"task": "mqar"}) for number in (1, 2)])
        ledger.fail(ledger.begin("r1", "here"), "why")
        scores = {"accuracy": [0.25, 1.0]}
        attempt = ledger.begin("r1", "here")
        ledger.deliver(Delivery("r1", attempt, "finished", {"last": None}, LINES, {"batches": "b"}, ["a"], scores))
        ledger.add_event("started", "now")
        ledger.give_up("r2", "why not")
        ledger.add_answers("basis", "[1, 2]")
        ledger.add_audit("dot | softmax", True, True, [{"name": "leak"}])
        ledger.note_fact("study", "small")
    return path


def read_all(path: Path) -> Any:
    """Return what every reader of a ledger returns."""
    with closing(Ledger(path, is_new=False)) as ledger:
        scores = ledger.scores("r1", "accuracy")
        return (
            ledger.runs(), ledger.results(), ledger.lines("r1", "train"), ledger.pairing("r1"), ledger.examples("r1"),
            None if scores is None else scores.tolist(), ledger.given_up(), ledger.failures(), ledger.answers("basis"),
            ledger.events("started"), ledger.audit("dot | softmax", True), ledger.fact("study"), ledger.begun(),
        )  # fmt: skip


def test_no_flip_and_no_cut_of_a_ledger_changes_what_is_read(written: Path, tmp_path: Path) -> None:
    right, whole, draw = read_all(written), written.read_bytes(), random.Random(0)
    path, refused = tmp_path / "ledger.sqlite", 0
    used = [place for place, byte in enumerate(whole) if byte]  # most of a page is empty
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[draw.choice(used)] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged if draw.random() < 0.9 else whole[: draw.randrange(1, len(whole))])
        try:
            assert read_all(path) == right
        except StudyError as error:
            refused += str(path) in str(error)
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    assert refused > 150


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("results", "result = '{}'"), ("scores", "scores = x'00'"), ("metrics", "line = '{}'"), ("runs", "seed = 7"),
        ("pairings", "hashes = '{}'"), ("examples", "ids = '[]'"), ("answers", "answers = '[]'"),
        ("events", "said = 'later'"), ("audits", "findings = '[]'"), ("facts", "value = '4 '"),
        ("failures", "reason = ''"), ("attempts", "run = 'r2'"), ("given_up", "reason = ''"), (DIGESTS, "sha256 = x''"),
    ],
)  # fmt: skip
def test_a_row_that_was_changed_is_named(table: str, change: str, written: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(written, path)
    with closing(sqlite3.connect(path)) as base:
        base.execute(f"DROP TRIGGER no_update_of_{table}")
        base.execute(f"UPDATE {table} SET {change}")
        base.commit()
    what = "facts" if table == DIGESTS else table
    message = f"is damaged: (a row|rows) of its table '{what}' .* not what was written; restore it from a copy"
    with pytest.raises(StudyError, match=message):
        read_all(path)


def test_a_ledger_without_hashes_is_read(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(written, path)
    with closing(sqlite3.connect(path)) as base:
        base.execute(f"DROP TABLE {DIGESTS}")
        base.commit()
    assert read_all(path) == read_all(written)
    with closing(Ledger(path)) as ledger:
        ledger.add_event("started", "again")
        assert ledger.events("started") == ["now", "again"]


@contextmanager
def without_permission(folder: Path) -> Iterator[None]:
    """Take away the right to write below a folder; root, who keeps it, becomes another user."""
    is_root = os.geteuid() == 0
    for file in [folder, *folder.rglob("*")]:
        file.chmod(0o555 if file.is_dir() else 0o444)
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for file in [folder, *folder.rglob("*")]:
            file.chmod(0o755 if file.is_dir() else 0o644)


def leave_open(folder: Path) -> None:
    """Let a ledger look as after a kill: its latest rows are in the file beside it."""
    with closing(Ledger(folder / "ledger.sqlite")) as ledger:
        ledger.add_event("late", "a row")
        for name in ("ledger.sqlite", "ledger.sqlite-wal"):
            shutil.copyfile(folder / name, folder / f"{name}.copy")
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        (folder / f"{name}.copy").replace(folder / name)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_study_that_cannot_be_written_is_read_and_reported(
    is_killed: bool, public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(public / "cache"))
    folder, out = Made(public / "study").give("dot", BASE).give("better", HIGH).done(), public / "out"
    if is_killed:
        leave_open(folder)
    out.mkdir()
    if os.geteuid() == 0:
        os.chown(out, NOBODY, -1)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with without_permission(folder):
        with open_record(folder) as record:
            assert record.ledger.events("late") == (["a row"] if is_killed else [])
            with pytest.warns(AttnlabWarning, match="cannot be written, so its ledger does not note"):
                assert len(record.answers) == 1
            with pytest.raises(StudyError, match="readonly"):
                record.ledger.add_event("a", "b")
        if not is_killed:
            with pytest.warns(AttnlabWarning, match="cannot be written"):
                page = write_report(folder, out)
            assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
