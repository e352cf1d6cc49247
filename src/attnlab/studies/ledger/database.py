"""The ledger of a study, one sqlite file: runs, attempts, results, metrics, scores of examples, answers, events.

A trigger refuses to change or remove rows. Rows are on the disk when a call returns; a run's result, metrics and scores
are added in one transaction.
"""

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

VERSION = 4
ENDED = ("finished", "stopped early")
"""Statuses of runs that have a score."""
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
    "given_up": "run TEXT NOT NULL REFERENCES runs(id), start INTEGER NOT NULL, reason TEXT NOT NULL, "
                "at REAL NOT NULL, PRIMARY KEY (run, start)",
    "answers": "basis TEXT PRIMARY KEY, answers TEXT NOT NULL, at REAL NOT NULL",
    "pairings": "run TEXT PRIMARY KEY REFERENCES runs(id), hashes TEXT NOT NULL",
    "audits": "mechanism TEXT NOT NULL, is_causal INTEGER NOT NULL, passed INTEGER NOT NULL, findings TEXT NOT NULL, "
              "at REAL NOT NULL, PRIMARY KEY (mechanism, is_causal)",
    "events": "number INTEGER PRIMARY KEY, kind TEXT NOT NULL, said TEXT NOT NULL, at REAL NOT NULL",
}  # fmt: skip


@dataclass(frozen=True)
class RunRow:
    """A row of `runs`."""

    id: str
    arm: str
    size: str
    phase: str
    seed: int
    config: dict[str, Any]


@dataclass(frozen=True)
class ResultRow:
    """The result of a run that has ended."""

    run: str
    status: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Delivery:
    """The outputs of a run that has ended."""

    run: str
    attempt: int
    status: str
    result: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    pairing: Mapping[str, Any]
    """Hashes of what the run shares with runs of its seed in other arms."""
    ids: Sequence[str]
    scores: Mapping[str, Sequence[float]]
    clusters: Sequence[str] | None = None
    """The group of each example, such as its article; None if examples are independent."""


class Ledger:
    """The ledger of one study. The process that has the study's lock writes it; any number may read."""

    def __init__(self, path: Path, *, is_new: bool = True) -> None:
        refuse_network(path)
        if not is_new and not path.exists():
            raise StudyError(f"{path.parent} holds no study: it has no {path.name}")
        self.path = path
        for file in (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", "-journal")):
            if file.is_symlink():
                raise StudyError(f"{file} is a symbolic link, which may lead anywhere; remove it")
        try:
            self.base = sqlite3.connect(path, isolation_level=None, timeout=60)
        except sqlite3.Error as error:
            raise StudyError(f"{path} cannot be used as a ledger: {error}") from error
        try:
            self._set_up(is_new)
        except BaseException:
            self.base.close()
            raise

    def _set_up(self, is_new: bool) -> None:
        # Without recursive triggers, INSERT OR REPLACE would remove a row without calling the trigger.
        for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON"):
            mode = self.execute(f"PRAGMA {setting}").fetchone()
            if setting == "journal_mode=WAL" and mode[0] != "wal":
                raise StudyError(f"{self.path}: the file system has no shared memory for a ledger; use a local disk")
        tables = {row[0] for row in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "facts" not in tables:
            raise StudyError(f"{self.path} is not a ledger but another database; give the study another folder")
        if is_new and not tables:
            self._make_tables()
        if self.fact("version") != str(VERSION):
            raise StudyError(
                f"{self.path} has format {self.fact('version')}, and this attnlab needs {VERSION}; use the attnlab "
                "that began the study, or give another folder"
            )

    def _make_tables(self) -> None:
        with self.transaction():
            for name, columns in TABLES.items():
                self.execute(f"CREATE TABLE {name} ({columns})")
                for what in ("UPDATE", "DELETE"):
                    self.execute(
                        f"CREATE TRIGGER no_{what.lower()}_of_{name} BEFORE {what} ON {name} "
                        f"BEGIN SELECT RAISE(ABORT, 'the ledger is only ever added to'); END"
                    )
            self.execute("INSERT INTO facts VALUES ('version', ?)", (str(VERSION),))

    def execute(self, command: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a command of SQL; an error of the file becomes a StudyError."""
        try:
            return self.base.execute(command, values)
        except sqlite3.Error as error:
            advice = "move it away to start again" if "not a database" in str(error) else "its content is intact"
            raise StudyError(f"{self.path} cannot be used as a ledger: {error}; {advice}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Add rows in one transaction."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.base.in_transaction:
                self.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self.base.close()

    def fact(self, name: str) -> str | None:
        """Return the fact of a name, None if there is none."""
        value: str | None = self._find("SELECT value FROM facts WHERE name = ?", name)
        return value

    def _find(self, query: str, *values: Any) -> Any:
        """Return the first column of the first row, None without one."""
        row = self.execute(query, values).fetchone()
        return None if row is None else row[0]

    def note_fact(self, name: str, value: str) -> None:
        """Add a fact; another value under the same name is an error."""
        self.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, value))
        if self.fact(name) != value:
            known = f"its {name} is '{self.fact(name)}', not '{value}'"
            raise StudyError(f"{self.path.parent} holds another study: {known}; give this one another folder")

    def add_runs(self, runs: Sequence[RunRow]) -> None:
        """Add the runs that are new."""
        with self.transaction():
            for run in runs:
                config = json.dumps(run.config, sort_keys=True)
                row = (run.id, run.arm, run.size, run.phase, run.seed, config, time.time())
                self.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def begin(self, run: str, worker: str) -> int:
        """Add an attempt of a run; return its number."""
        added = self.execute("INSERT INTO attempts (run, worker, at) VALUES (?, ?, ?)", (run, worker, time.time()))
        return int(added.lastrowid or 0)

    def fail(self, attempt: int, reason: str) -> None:
        """Record that an attempt failed."""
        self.execute("INSERT OR IGNORE INTO failures VALUES (?, ?, ?)", (attempt, reason, time.time()))

    def give_up(self, run: str, reason: str) -> None:
        """Record that a run is not attempted again until the study is started again."""
        row = (run, self._newest_start(), reason, time.time())
        self.execute("INSERT OR IGNORE INTO given_up VALUES (?, ?, ?, ?)", row)

    def deliver(self, delivery: Delivery) -> None:
        """Add the outputs of a run, unless the run has a result already."""
        with self.transaction():
            row = (delivery.run, delivery.attempt, delivery.status, json.dumps(delivery.result), time.time())
            if not self.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?)", row).rowcount:
                return
            for line in delivery.metrics:
                key = (delivery.run, line["kind"], line["step"], line.get("name", ""), json.dumps(line))
                self.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", key)
            self.execute("INSERT INTO pairings VALUES (?, ?)", (delivery.run, json.dumps(delivery.pairing)))
            clusters = None if delivery.clusters is None else list(delivery.clusters)
            examples = (delivery.run, json.dumps(list(delivery.ids)), json.dumps(clusters))
            self.execute("INSERT INTO examples VALUES (?, ?, ?)", examples)
            for name, values in delivery.scores.items():
                blob = np.asarray(values, dtype="<f8").tobytes()
                self.execute("INSERT INTO scores VALUES (?, ?, ?)", (delivery.run, name, blob))

    def add_audit(self, mechanism: str, is_causal: bool, passed: bool, findings: Sequence[Mapping[str, Any]]) -> None:
        """Add the findings of an audit."""
        row = (mechanism, int(is_causal), int(passed), json.dumps(list(findings)), time.time())
        self.execute("INSERT OR IGNORE INTO audits VALUES (?, ?, ?, ?, ?)", row)

    def add_event(self, kind: str, content: str) -> None:
        """Add an event."""
        self.execute("INSERT INTO events (kind, said, at) VALUES (?, ?, ?)", (kind, content, time.time()))

    def add_event_if_new(self, kind: str, content: str) -> None:
        """Add an event, unless the last one of its kind is the same."""
        if self.events(kind)[-1:] != [content]:
            self.add_event(kind, content)

    def runs(self) -> list[RunRow]:
        """List all runs in the order they were planned."""
        rows = self.execute("SELECT id, arm, size, phase, seed, config FROM runs ORDER BY rowid").fetchall()
        return [RunRow(id, arm, size, phase, seed, json.loads(config)) for id, arm, size, phase, seed, config in rows]

    def results(self) -> dict[str, ResultRow]:
        """Return the results of the runs that have ended, by id."""
        rows = self.execute("SELECT run, status, result FROM results").fetchall()
        return {row[0]: ResultRow(row[0], row[1], json.loads(row[2])) for row in rows}

    def audit(self, mechanism: str, is_causal: bool) -> list[dict[str, Any]] | None:
        """Return the findings of an audit, None if there is none."""
        query = "SELECT findings FROM audits WHERE mechanism = ? AND is_causal = ?"
        findings = self._find(query, mechanism, int(is_causal))
        return None if findings is None else json.loads(findings)

    def failures(self) -> list[tuple[str, str]]:
        """List the runs whose attempts failed, with the reason, oldest first."""
        query = "SELECT run, reason FROM failures JOIN attempts ON attempt = number ORDER BY number"
        return [(row[0], row[1]) for row in self.execute(query)]

    def given_up(self) -> dict[str, str]:
        """Return the runs that were given up since the study was last started, with the reason, by id."""
        query = "SELECT run, reason FROM given_up WHERE start = ? AND run NOT IN (SELECT run FROM results)"
        return dict(self.execute(query, (self._newest_start(),)).fetchall())

    def _newest_start(self) -> int:
        return int(self._find("SELECT coalesce(max(number), 0) FROM events WHERE kind = 'started'"))

    def add_answers(self, basis: str, answers: str) -> None:
        """Store the answers of the study, as JSON, under a hash of what they were computed from."""
        self.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (basis, answers, time.time()))

    def answers(self, basis: str) -> str | None:
        """Return the answers that were computed from this basis, as JSON; None if there are none."""
        answers: str | None = self._find("SELECT answers FROM answers WHERE basis = ?", basis)
        return answers

    def events(self, kind: str) -> list[str]:
        """List the events of one kind, oldest first."""
        return [row[0] for row in self.execute("SELECT said FROM events WHERE kind = ? ORDER BY number", (kind,))]

    def list_active(self) -> list[str]:
        """List the runs that were started since the last start of the study and have neither ended nor failed."""
        query = (
            "SELECT run, max(number) AS newest FROM attempts WHERE run NOT IN (SELECT run FROM results) "
            "AND at >= (SELECT coalesce(max(at), 0) FROM events WHERE kind = 'started') "
            "GROUP BY run HAVING newest NOT IN (SELECT attempt FROM failures) ORDER BY newest"
        )
        return [row[0] for row in self.execute(query)]

    def durations(self) -> dict[str, float]:
        """Return the seconds of the attempt in which each run ended."""
        query = "SELECT results.run, results.at - attempts.at FROM results JOIN attempts ON attempt = number"
        return {row[0]: float(row[1]) for row in self.execute(query)}

    def pairing(self, run: str) -> dict[str, Any] | None:
        """Return the hashes of what a run shares with runs of its seed in other arms."""
        hashes = self._find("SELECT hashes FROM pairings WHERE run = ?", run)
        return None if hashes is None else json.loads(hashes)

    def scores(self, run: str, name: str) -> NDArray[np.float64] | None:
        """Return the scores of a run's examples under a name, in the order of `examples`."""
        blob = self._find("SELECT scores FROM scores WHERE run = ? AND name = ?", run, name)
        return None if blob is None else np.frombuffer(blob, dtype="<f8")

    def examples(self, run: str) -> tuple[list[str], list[str] | None]:
        """Return the ids of the examples that a run was evaluated on, and their clusters, None without any."""
        row = self.execute("SELECT ids, clusters FROM examples WHERE run = ?", (run,)).fetchone()
        return ([], None) if row is None else (json.loads(row[0]), json.loads(row[1]))

    def lines(self, run: str, kind: str) -> list[dict[str, Any]]:
        """Return the metrics of one kind, by step."""
        query = "SELECT line FROM metrics WHERE run = ? AND kind = ? ORDER BY step, name"
        return [json.loads(row[0]) for row in self.execute(query, (run, kind))]
