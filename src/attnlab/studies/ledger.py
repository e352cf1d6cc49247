"""What a study knows, in one sqlite file: runs, attempts, results, metrics, scores of examples, events.

Rows are only ever added: a trigger refuses to change or remove one. What must not be lost is on the disk when a call
returns; a run's result, metrics and scores come in together or not at all.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import StudyError

VERSION = 1
TABLES: Mapping[str, str] = {
    "facts": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "runs": "id TEXT PRIMARY KEY, arm TEXT NOT NULL, size TEXT NOT NULL, stage TEXT NOT NULL, seed INTEGER NOT NULL, "
            "config TEXT NOT NULL, at REAL NOT NULL",
    "attempts": "number INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs(id), worker TEXT NOT NULL, "
                "at REAL NOT NULL",
    "failures": "attempt INTEGER PRIMARY KEY REFERENCES attempts(number), reason TEXT NOT NULL, at REAL NOT NULL",
    "results": "run TEXT PRIMARY KEY REFERENCES runs(id), attempt INTEGER NOT NULL REFERENCES attempts(number), "
               "status TEXT NOT NULL, result TEXT NOT NULL, at REAL NOT NULL",
    "metrics": "run TEXT NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, step INTEGER NOT NULL, name TEXT NOT NULL, "
               "line TEXT NOT NULL, PRIMARY KEY (run, kind, step, name)",
    "scores": "run TEXT NOT NULL REFERENCES runs(id), name TEXT NOT NULL, ids TEXT NOT NULL, scores BLOB NOT NULL, "
              "PRIMARY KEY (run, name)",
    "audits": "arm TEXT NOT NULL, mechanism TEXT NOT NULL, passed INTEGER NOT NULL, findings TEXT NOT NULL, "
              "at REAL NOT NULL, PRIMARY KEY (arm, mechanism)",
    "events": "number INTEGER PRIMARY KEY, kind TEXT NOT NULL, said TEXT NOT NULL, at REAL NOT NULL",
}  # fmt: skip

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs")
"""File systems whose locks sqlite cannot trust."""


@dataclass(frozen=True)
class RunRow:
    """A run as the ledger has it."""

    id: str
    arm: str
    size: str
    stage: str
    seed: int
    config: dict[str, Any]


@dataclass(frozen=True)
class ResultRow:
    """What became of a run."""

    run: str
    status: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Delivery:
    """All that a run that has ended leaves."""

    run: str
    attempt: int
    status: str
    result: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    ids: Sequence[str]
    scores: Mapping[str, Sequence[float]]


class Ledger:
    """The ledger of one study. One process writes it, which has the study's lock; any number may read."""

    def __init__(self, path: Path, *, is_new: bool = True) -> None:
        refuse_network(path)
        if not is_new and not path.exists():
            raise StudyError(f"{path.parent} holds no study: it has no {path.name}")
        try:
            self.base = sqlite3.connect(path, isolation_level=None, timeout=60)
            self.base.execute("PRAGMA journal_mode=WAL")
            self.base.execute("PRAGMA synchronous=FULL")
            self.base.execute("PRAGMA foreign_keys=ON")
            self._make_tables(path)
        except sqlite3.DatabaseError as error:
            raise StudyError(f"{path} cannot be used as a ledger: {error}; move it away to begin anew") from error

    def _make_tables(self, path: Path) -> None:
        with self.together():
            for name, columns in TABLES.items():
                self.base.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
                for what in ("UPDATE", "DELETE"):
                    self.base.execute(
                        f"CREATE TRIGGER IF NOT EXISTS no_{what.lower()}_of_{name} BEFORE {what} ON {name} "
                        f"BEGIN SELECT RAISE(ABORT, 'the ledger is only ever added to'); END"
                    )
            self.base.execute("INSERT OR IGNORE INTO facts VALUES ('version', ?)", (str(VERSION),))
        if self.fact("version") != str(VERSION):
            raise StudyError(f"{path} is of format {self.fact('version')}; this attnlab writes {VERSION}")

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let what is added inside come in as one, or not at all."""
        self.base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.base.execute("ROLLBACK")
            raise
        self.base.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self.base.close()

    def fact(self, name: str) -> str | None:
        """Return what was noted under a name."""
        found = self.base.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def note_fact(self, name: str, value: str) -> None:
        """Note something once and for all; another value under the same name is an error."""
        self.base.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, value))
        if self.fact(name) != value:
            raise StudyError(f"the study's {name} is '{self.fact(name)}', not '{value}'; begin another study")

    def add_runs(self, runs: Sequence[RunRow]) -> None:
        """Add the runs that are not there yet."""
        with self.together():
            for run in runs:
                row = (
                    run.id,
                    run.arm,
                    run.size,
                    run.stage,
                    run.seed,
                    json.dumps(run.config, sort_keys=True),
                    time.time(),
                )
                self.base.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def begin(self, run: str, worker: str) -> int:
        """Note that a run was started; return the attempt's number."""
        added = self.base.execute("INSERT INTO attempts (run, worker, at) VALUES (?, ?, ?)", (run, worker, time.time()))
        return int(added.lastrowid or 0)

    def fail(self, attempt: int, reason: str) -> None:
        """Note that an attempt failed."""
        self.base.execute("INSERT OR IGNORE INTO failures VALUES (?, ?, ?)", (attempt, reason, time.time()))

    def deliver(self, delivery: Delivery) -> None:
        """Take in all that a run leaves; once it is there, it is not taken in again."""
        with self.together():
            row = (delivery.run, delivery.attempt, delivery.status, json.dumps(delivery.result), time.time())
            if not self.base.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?)", row).rowcount:
                return
            for line in delivery.metrics:
                key = (delivery.run, line["kind"], line["step"], line.get("name", ""), json.dumps(line))
                self.base.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", key)
            for name, values in delivery.scores.items():
                blob = np.asarray(values, dtype="<f8").tobytes()
                self.base.execute(
                    "INSERT INTO scores VALUES (?, ?, ?, ?)", (delivery.run, name, json.dumps(list(delivery.ids)), blob)
                )

    def add_audit(self, arm: str, mechanism: str, passed: bool, findings: Sequence[Mapping[str, Any]]) -> None:
        """Note what an audit of an arm found."""
        row = (arm, mechanism, int(passed), json.dumps(list(findings)), time.time())
        self.base.execute("INSERT OR IGNORE INTO audits VALUES (?, ?, ?, ?, ?)", row)

    def say(self, kind: str, said: str) -> None:
        """Note an event."""
        self.base.execute("INSERT INTO events (kind, said, at) VALUES (?, ?, ?)", (kind, said, time.time()))

    def runs(self) -> list[RunRow]:
        """List all runs in the order they were planned."""
        rows = self.base.execute("SELECT id, arm, size, stage, seed, config FROM runs ORDER BY rowid").fetchall()
        return [RunRow(id, arm, size, stage, seed, json.loads(config)) for id, arm, size, stage, seed, config in rows]

    def results(self) -> dict[str, ResultRow]:
        """Return what became of the runs that have ended, by id."""
        rows = self.base.execute("SELECT run, status, result FROM results").fetchall()
        return {row[0]: ResultRow(row[0], row[1], json.loads(row[2])) for row in rows}

    def audits(self) -> dict[str, tuple[bool, list[dict[str, Any]]]]:
        """Return whether each arm's audit passed, and what it found."""
        rows = self.base.execute("SELECT arm, passed, findings FROM audits").fetchall()
        return {row[0]: (bool(row[1]), json.loads(row[2])) for row in rows}

    def num_failures(self, run: str) -> int:
        """Return how many attempts of a run have failed."""
        query = "SELECT COUNT(*) FROM failures JOIN attempts ON attempt = number WHERE run = ?"
        return int(self.base.execute(query, (run,)).fetchone()[0])

    def last_failure(self, run: str) -> str | None:
        """Return why the last failed attempt of a run failed."""
        query = (
            "SELECT reason FROM failures JOIN attempts ON attempt = number WHERE run = ? ORDER BY number DESC LIMIT 1"
        )
        found = self.base.execute(query, (run,)).fetchone()
        return None if found is None else str(found[0])

    def scores(self, run: str, name: str) -> tuple[list[str], NDArray[np.float64]] | None:
        """Return the scores of a run's examples under a name, with the examples' ids."""
        found = self.base.execute("SELECT ids, scores FROM scores WHERE run = ? AND name = ?", (run, name)).fetchone()
        return None if found is None else (json.loads(found[0]), np.frombuffer(found[1], dtype="<f8"))

    def lines(self, run: str, kind: str) -> list[dict[str, Any]]:
        """Return the metrics of one kind, by step."""
        query = "SELECT line FROM metrics WHERE run = ? AND kind = ? ORDER BY step, name"
        return [json.loads(row[0]) for row in self.base.execute(query, (run, kind))]


def refuse_network(path: Path) -> None:
    """Refuse a folder on a network file system, where a ledger is lost sooner or later."""
    kind = file_system_of(path)
    if kind in NETWORK:
        raise StudyError(
            f"{path.parent} is on a network file system ({kind}), whose locks sqlite cannot trust; give --out a folder "
            "of a local disk, and copy the study when it has ended"
        )


def file_system_of(path: Path) -> str:
    """Return the kind of file system that a path is on, where Linux tells."""
    if sys.platform != "linux" or not os.path.exists("/proc/mounts"):
        return ""
    place = os.path.realpath(path.parent)
    best, kind = "", ""
    for line in Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        _, mount, own, *_ = line.split()
        mount = mount.replace("\\040", " ")
        if (place == mount or place.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
            best, kind = mount, own
    return kind
