"""What a study knows, in one sqlite file: runs, attempts, results, metrics, scores of examples, events.

Rows are only ever added: a trigger refuses to change or remove one. What must not be lost is on the disk when a call
returns; a run's result, metrics and scores come in together or not at all.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import StudyError

from .disk import refuse_network

VERSION = 3
ENDED = ("finished", "stopped early")
"""Statuses of a run that has a figure."""
TABLES: Mapping[str, str] = {
    "facts": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "runs": "id TEXT PRIMARY KEY, arm TEXT NOT NULL, size TEXT NOT NULL, phase TEXT NOT NULL, seed INTEGER NOT NULL, "
            "config TEXT NOT NULL, at REAL NOT NULL",
    "attempts": "number INTEGER PRIMARY KEY, run TEXT NOT NULL REFERENCES runs(id), worker TEXT NOT NULL, "
                "at REAL NOT NULL",
    "failures": "attempt INTEGER PRIMARY KEY REFERENCES attempts(number), reason TEXT NOT NULL, at REAL NOT NULL",
    "results": "run TEXT PRIMARY KEY REFERENCES runs(id), attempt INTEGER NOT NULL REFERENCES attempts(number), "
               "status TEXT NOT NULL, result TEXT NOT NULL, at REAL NOT NULL",
    "metrics": "run TEXT NOT NULL REFERENCES runs(id), kind TEXT NOT NULL, step INTEGER NOT NULL, name TEXT NOT NULL, "
               "line TEXT NOT NULL, PRIMARY KEY (run, kind, step, name)",
    "examples": "run TEXT PRIMARY KEY REFERENCES runs(id), ids TEXT NOT NULL, clusters TEXT NOT NULL",
    "scores": "run TEXT NOT NULL REFERENCES runs(id), name TEXT NOT NULL, scores BLOB NOT NULL, "
              "PRIMARY KEY (run, name)",
    "pairings": "run TEXT PRIMARY KEY REFERENCES runs(id), hashes TEXT NOT NULL",
    "audits": "mechanism TEXT NOT NULL, is_causal INTEGER NOT NULL, passed INTEGER NOT NULL, findings TEXT NOT NULL, "
              "at REAL NOT NULL, PRIMARY KEY (mechanism, is_causal)",
    "events": "number INTEGER PRIMARY KEY, kind TEXT NOT NULL, said TEXT NOT NULL, at REAL NOT NULL",
}  # fmt: skip


@dataclass(frozen=True)
class RunRow:
    """A run as the ledger has it."""

    id: str
    arm: str
    size: str
    phase: str
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
    pairing: Mapping[str, Any]
    """Hashes of what the run shares with those of its seed in other arms."""
    ids: Sequence[str]
    scores: Mapping[str, Sequence[float]]
    clusters: Sequence[str] | None = None
    """The group that each example belongs to, such as an article's questions; None where each stands alone."""


class Ledger:
    """The ledger of one study. One process writes it, which has the study's lock; any number may read."""

    def __init__(self, path: Path, *, is_new: bool = True) -> None:
        refuse_network(path)
        if not is_new and not path.exists():
            raise StudyError(f"{path.parent} holds no study: it has no {path.name}")
        self.path = path
        self.base = self._connect()
        try:
            self._set_up(is_new)
        except BaseException:
            self.base.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self.path, isolation_level=None, timeout=60)
        except sqlite3.Error as error:
            raise StudyError(f"{self.path} cannot be used as a ledger: {error}") from error

    def _set_up(self, is_new: bool) -> None:
        # Without the last of these, INSERT OR REPLACE would remove a row past the trigger.
        for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON"):
            found = self.do(f"PRAGMA {setting}").fetchone()
            if setting == "journal_mode=WAL" and found[0] != "wal":
                raise StudyError(f"{self.path}: the file system has no shared memory for a ledger; use a local disk")
        tables = {row[0] for row in self.do("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "facts" not in tables:
            raise StudyError(f"{self.path} is a database of something else; give the study another folder")
        if is_new and not tables:
            self._make_tables()
        if self.fact("version") != str(VERSION):
            raise StudyError(
                f"{self.path} is of format {self.fact('version')}, and this attnlab writes {VERSION}; go on with the "
                "attnlab that began it, or give the study another folder"
            )

    def _make_tables(self) -> None:
        with self.together():
            for name, columns in TABLES.items():
                self.do(f"CREATE TABLE {name} ({columns})")
                for what in ("UPDATE", "DELETE"):
                    self.do(
                        f"CREATE TRIGGER no_{what.lower()}_of_{name} BEFORE {what} ON {name} "
                        f"BEGIN SELECT RAISE(ABORT, 'the ledger is only ever added to'); END"
                    )
            self.do("INSERT INTO facts VALUES ('version', ?)", (str(VERSION),))

    def do(self, command: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Carry out a command of SQL; trouble with the file is one sentence."""
        try:
            return self.base.execute(command, values)
        except sqlite3.Error as error:
            advice = "move it away to begin anew" if "not a database" in str(error) else "what is in it is whole"
            raise StudyError(f"{self.path} cannot be used as a ledger: {error}; {advice}") from error

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let what is added inside come in as one, or not at all."""
        self.do("BEGIN IMMEDIATE")
        try:
            yield
            self.do("COMMIT")
        except BaseException:
            if self.base.in_transaction:
                self.do("ROLLBACK")
            raise

    def close(self) -> None:
        """Let go of the file."""
        self.base.close()

    def fact(self, name: str) -> str | None:
        """Return what was noted under a name."""
        found = self.do("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def note_fact(self, name: str, value: str) -> None:
        """Note something once and for all; another value under the same name is an error."""
        self.do("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, value))
        if self.fact(name) != value:
            raise StudyError(
                f"{self.path.parent} holds another study: its {name} is '{self.fact(name)}', not '{value}'; give this "
                "one a folder of its own"
            )

    def add_runs(self, runs: Sequence[RunRow]) -> None:
        """Add the runs that are not there yet."""
        with self.together():
            for run in runs:
                config = json.dumps(run.config, sort_keys=True)
                row = (run.id, run.arm, run.size, run.phase, run.seed, config, time.time())
                self.do("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def begin(self, run: str, worker: str) -> int:
        """Note that a run was started; return the attempt's number."""
        added = self.do("INSERT INTO attempts (run, worker, at) VALUES (?, ?, ?)", (run, worker, time.time()))
        return int(added.lastrowid or 0)

    def fail(self, attempt: int, reason: str) -> None:
        """Note that an attempt failed."""
        self.do("INSERT OR IGNORE INTO failures VALUES (?, ?, ?)", (attempt, reason, time.time()))

    def deliver(self, delivery: Delivery) -> None:
        """Take in all that a run leaves; once it is there, it is not taken in again."""
        with self.together():
            row = (delivery.run, delivery.attempt, delivery.status, json.dumps(delivery.result), time.time())
            if not self.do("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?)", row).rowcount:
                return
            for line in delivery.metrics:
                key = (delivery.run, line["kind"], line["step"], line.get("name", ""), json.dumps(line))
                self.do("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", key)
            self.do("INSERT INTO pairings VALUES (?, ?)", (delivery.run, json.dumps(delivery.pairing)))
            clusters = None if delivery.clusters is None else list(delivery.clusters)
            examples = (delivery.run, json.dumps(list(delivery.ids)), json.dumps(clusters))
            self.do("INSERT INTO examples VALUES (?, ?, ?)", examples)
            for name, values in delivery.scores.items():
                blob = np.asarray(values, dtype="<f8").tobytes()
                self.do("INSERT INTO scores VALUES (?, ?, ?)", (delivery.run, name, blob))

    def add_audit(
        self, mechanism: str, is_causal: bool, passed: bool, findings: Sequence[Mapping[str, Any]]
    ) -> None:  # fmt: skip
        """Note what an audit of a mechanism found."""
        row = (mechanism, int(is_causal), int(passed), json.dumps(list(findings)), time.time())
        self.do("INSERT OR IGNORE INTO audits VALUES (?, ?, ?, ?, ?)", row)

    def say(self, kind: str, said: str) -> None:
        """Note an event."""
        self.do("INSERT INTO events (kind, said, at) VALUES (?, ?, ?)", (kind, said, time.time()))

    def say_news(self, kind: str, said: str) -> None:
        """Note an event, unless it is what was said last of its kind."""
        if self.events(kind)[-1:] != [said]:
            self.say(kind, said)

    def runs(self) -> list[RunRow]:
        """List all runs in the order they were planned."""
        rows = self.do("SELECT id, arm, size, phase, seed, config FROM runs ORDER BY rowid").fetchall()
        return [RunRow(id, arm, size, phase, seed, json.loads(config)) for id, arm, size, phase, seed, config in rows]

    def results(self) -> dict[str, ResultRow]:
        """Return what became of the runs that have ended, by id."""
        rows = self.do("SELECT run, status, result FROM results").fetchall()
        return {row[0]: ResultRow(row[0], row[1], json.loads(row[2])) for row in rows}

    def audit(self, mechanism: str, is_causal: bool) -> list[dict[str, Any]] | None:
        """Return what an audit of a mechanism found, None where there was none."""
        query = "SELECT findings FROM audits WHERE mechanism = ? AND is_causal = ?"
        found = self.do(query, (mechanism, int(is_causal))).fetchone()
        return None if found is None else list(json.loads(found[0]))

    def failures(self) -> list[tuple[str, str]]:
        """List the runs whose attempts failed, with the reason, in the order it happened."""
        query = "SELECT run, reason FROM failures JOIN attempts ON attempt = number ORDER BY number"
        return [(row[0], row[1]) for row in self.do(query)]

    def events(self, kind: str, since: str | None = None) -> list[str]:
        """List what was said of one kind; since: only after the last event of that kind."""
        query = (
            "SELECT said FROM events WHERE kind = ? AND number > "
            "(SELECT coalesce(max(number), 0) FROM events WHERE kind = ?) ORDER BY number"
        )
        return [row[0] for row in self.do(query, (kind, since))]

    def attempts(self) -> list[tuple[str, str, float]]:
        """List every start: the run, the worker, and when."""
        return [tuple(row) for row in self.do("SELECT run, worker, at FROM attempts ORDER BY number")]

    def going(self) -> list[str]:
        """List the runs that were started since the study was, and have neither ended nor failed."""
        query = (
            "SELECT run, max(number) AS newest FROM attempts "
            "WHERE at >= (SELECT coalesce(max(at), 0) FROM events WHERE kind = 'started') "
            "AND run NOT IN (SELECT run FROM results) "
            "GROUP BY run HAVING newest NOT IN (SELECT attempt FROM failures) ORDER BY newest"
        )
        return [row[0] for row in self.do(query)]

    def durations(self) -> dict[str, float]:
        """Return the seconds from the start to the end of the attempt that each run ended in."""
        query = "SELECT results.run, results.at - attempts.at FROM results JOIN attempts ON attempt = number"
        return {row[0]: float(row[1]) for row in self.do(query)}

    def pairing(self, run: str) -> dict[str, Any] | None:
        """Return the hashes of what a run shares with those of its seed in other arms."""
        found = self.do("SELECT hashes FROM pairings WHERE run = ?", (run,)).fetchone()
        return None if found is None else dict(json.loads(found[0]))

    def scores(self, run: str, name: str) -> NDArray[np.float64] | None:
        """Return the scores of a run's examples under a name, in the order of `examples`."""
        found = self.do("SELECT scores FROM scores WHERE run = ? AND name = ?", (run, name)).fetchone()
        return None if found is None else np.frombuffer(found[0], dtype="<f8")

    def examples(self, run: str) -> tuple[list[str], list[str] | None]:
        """Return the ids of the examples that a run was evaluated on, and their clusters where they have any."""
        found = self.do("SELECT ids, clusters FROM examples WHERE run = ?", (run,)).fetchone()
        return ([], None) if found is None else (json.loads(found[0]), json.loads(found[1]))

    def lines(self, run: str, kind: str) -> list[dict[str, Any]]:
        """Return the metrics of one kind, by step."""
        query = "SELECT line FROM metrics WHERE run = ? AND kind = ? ORDER BY step, name"
        return [json.loads(row[0]) for row in self.do(query, (run, kind))]
