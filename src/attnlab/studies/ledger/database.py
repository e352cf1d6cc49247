"""The ledger of a study, one sqlite file: runs, attempts, results, metrics, scores of examples, answers, events.

A trigger refuses to change or remove rows. Rows are on the disk when a call returns; a run's result, metrics and scores
are added in one transaction. `connection.py` opens the file and verifies what is read.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import StudyError

from .connection import Connection

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


class Ledger(Connection):
    """The ledger of one study. The process that has the study's lock writes it; any number may read."""

    def __init__(self, path: Path, *, is_new: bool = True, before: "Ledger | None" = None) -> None:
        """Open a ledger. before: the same file as it was opened before, whose rows need not be read again."""
        super().__init__(path, TABLES, is_new=is_new, is_checked=before is not None)
        # Rows are never changed, so each is read once.
        self._runs: list[RunRow] = [] if before is None else before._runs
        self._results: dict[str, ResultRow] = {} if before is None else before._results
        self._begun: list[str] = [] if before is None else before._begun
        try:
            if self.fact("version") != str(VERSION):
                raise StudyError(
                    f"{self.path} has format {self.fact('version')}, and this attnlab needs {VERSION}; use the attnlab "
                    "that began the study, or give another folder"
                )
        except BaseException:
            self.close()
            raise

    def _write_first_rows(self) -> None:
        self.insert("facts", "version", str(VERSION))

    def fact(self, name: str) -> str | None:
        """Return the fact of a name, None if there is none."""
        value: str | None = self._find_last("facts", "WHERE name = ?", name)
        return value

    def _find_last(self, table: str, where: str, *values: Any) -> Any:
        """Return the last column of the first row, None without one."""
        rows = self.select(table, where, *values)
        return rows[0][-1] if rows else None

    def note_fact(self, name: str, value: str) -> None:
        """Add a fact; another value under the same name is an error."""
        self.insert("facts", name, value)
        if self.fact(name) != value:
            known = f"its {name} is '{self.fact(name)}', not '{value}'"
            raise StudyError(f"{self.path.parent} holds another study: {known}; give this one another folder")

    def add_runs(self, runs: Sequence[RunRow]) -> None:
        """Add the runs that are new."""
        with self.transaction():
            for run in runs:
                config = json.dumps(run.config, sort_keys=True)
                self.insert("runs", run.id, run.arm, run.size, run.phase, run.seed, config, time.time())

    def begin(self, run: str, worker: str) -> int:
        """Add an attempt of a run; return its number."""
        return self.insert("attempts", None, run, worker, time.time())

    def fail(self, attempt: int, reason: str) -> None:
        """Record that an attempt failed."""
        self.insert("failures", attempt, reason, time.time())

    def give_up(self, run: str, reason: str) -> None:
        """Record that a run is not attempted again until the study is started again."""
        self.insert("given_up", run, self._newest_start(), reason, time.time())

    def deliver(self, delivery: Delivery) -> None:
        """Add the outputs of a run, unless the run has a result already."""
        with self.transaction():
            row = (delivery.run, delivery.attempt, delivery.status, json.dumps(delivery.result), time.time())
            if not self.insert("results", *row):
                return
            self._insert_metrics(delivery.run, delivery.metrics)
            self.insert("pairings", delivery.run, json.dumps(delivery.pairing))
            clusters = None if delivery.clusters is None else list(delivery.clusters)
            self.insert("examples", delivery.run, json.dumps(list(delivery.ids)), json.dumps(clusters))
            for name, values in delivery.scores.items():
                self.insert("scores", delivery.run, name, np.asarray(values, dtype="<f8").tobytes())

    def _insert_metrics(self, run: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add the metrics of a run, with one hash for those of a kind, which are read together."""
        rows_by_kind: dict[str, list[tuple[Any, ...]]] = {}
        for line in lines:
            row = (run, line["kind"], line["step"], line.get("name", ""), json.dumps(line))
            self.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", row)
            rows_by_kind.setdefault(line["kind"], []).append(row[2:])
        for kind, rows in rows_by_kind.items():
            self.insert_digest("metrics", f"{run} {kind}", sorted(rows, key=_order))

    def add_audit(self, mechanism: str, is_causal: bool, passed: bool, findings: Sequence[Mapping[str, Any]]) -> None:
        """Add the findings of an audit."""
        self.insert("audits", mechanism, int(is_causal), int(passed), json.dumps(list(findings)), time.time())

    def add_event(self, kind: str, content: str) -> None:
        """Add an event."""
        self.insert("events", None, kind, content, time.time())

    def add_event_if_new(self, kind: str, content: str) -> None:
        """Add an event, unless the last one of its kind is the same."""
        if self.events(kind)[-1:] != [content]:
            self.add_event(kind, content)

    def runs(self) -> list[RunRow]:
        """List all runs in the order they were planned."""
        rows = self.select("runs", "WHERE runs.rowid > ? ORDER BY runs.rowid", len(self._runs))
        self._runs += [
            RunRow(id, arm, size, phase, seed, json.loads(config)) for id, arm, size, phase, seed, config, _ in rows
        ]
        return list(self._runs)

    def results(self) -> dict[str, ResultRow]:
        """Return the results of the runs that have ended, by id."""
        for run, _, status, result, _ in self.select("results", "WHERE results.rowid > ?", len(self._results)):
            self._results[run] = ResultRow(run, status, json.loads(result))
        return dict(self._results)

    def audit(self, mechanism: str, is_causal: bool) -> list[dict[str, Any]] | None:
        """Return the findings of an audit, None if there is none."""
        rows = self.select("audits", "WHERE mechanism = ? AND is_causal = ?", mechanism, int(is_causal))
        return json.loads(rows[0][3]) if rows else None

    def failures(self) -> list[tuple[str, str]]:
        """List the runs whose attempts failed, with the reason, oldest first."""
        runs = {number: run for number, run, *_ in self.select("attempts")}
        return [(runs[attempt], reason) for attempt, reason, _ in self.select("failures", "ORDER BY attempt")]

    def given_up(self) -> dict[str, str]:
        """Return the runs that were given up since the study was last started, with the reason, by id."""
        where = "WHERE start = ? AND run NOT IN (SELECT run FROM results)"
        return {run: reason for run, _, reason, _ in self.select("given_up", where, self._newest_start())}

    def _newest_start(self) -> int:
        rows = self.select("events", "WHERE kind = 'started' ORDER BY number DESC LIMIT 1")
        return int(rows[0][0]) if rows else 0

    def add_answers(self, basis: str, answers: str) -> None:
        """Store the answers of the study, as JSON, under a hash of what they were computed from."""
        self.insert("answers", basis, answers, time.time())

    def answers(self, basis: str) -> str | None:
        """Return the answers that were computed from this basis, as JSON; None if there are none."""
        rows = self.select("answers", "WHERE basis = ?", basis)
        return str(rows[0][1]) if rows else None

    def events(self, kind: str) -> list[str]:
        """List the events of one kind, oldest first."""
        return [said for _, _, said, _ in self.select("events", "WHERE kind = ? ORDER BY number", kind)]

    def begun(self) -> set[str]:
        """Return the runs that were started at least once."""
        rows = self.select("attempts", "WHERE number > ? ORDER BY number", len(self._begun))
        self._begun += [run for _, run, *_ in rows]
        return set(self._begun)

    def list_active(self) -> list[str]:
        """List the runs that were started since the last start of the study and have neither ended nor failed."""
        query = (
            "SELECT run, max(number) AS newest FROM attempts WHERE run NOT IN (SELECT run FROM results) "
            "AND at >= (SELECT coalesce(max(at), 0) FROM events WHERE kind = 'started') "
            "GROUP BY run HAVING newest NOT IN (SELECT attempt FROM failures) ORDER BY newest"
        )
        return [row[0] for row in self.fetch(query)]

    def durations(self) -> dict[str, float]:
        """Return the seconds of the attempt in which each run ended."""
        query = "SELECT results.run, results.at - attempts.at FROM results JOIN attempts ON attempt = number"
        return {row[0]: float(row[1]) for row in self.fetch(query)}

    def pairing(self, run: str) -> dict[str, Any] | None:
        """Return the hashes of what a run shares with runs of its seed in other arms."""
        hashes = self._find_last("pairings", "WHERE run = ?", run)
        return None if hashes is None else json.loads(hashes)

    def scores(self, run: str, name: str) -> NDArray[np.float64] | None:
        """Return the scores of a run's examples under a name, in the order of `examples`."""
        blob = self._find_last("scores", "WHERE run = ? AND name = ?", run, name)
        return None if blob is None else np.frombuffer(blob, dtype="<f8")

    def examples(self, run: str) -> tuple[list[str], list[str] | None]:
        """Return the ids of the examples that a run was evaluated on, and their clusters, None without any."""
        rows = self.select("examples", "WHERE run = ?", run)
        return (json.loads(rows[0][1]), json.loads(rows[0][2])) if rows else ([], None)

    def lines(self, run: str, kind: str) -> list[dict[str, Any]]:
        """Return the metrics of one kind, by step."""
        query = "SELECT step, name, line FROM metrics WHERE run = ? AND kind = ? ORDER BY step, name"
        rows = self.fetch(query, (run, kind))
        self.check_digest("metrics", f"{run} {kind}", rows)
        return [json.loads(line) for _, _, line in rows]


def _order(row: Iterable[Any]) -> tuple[int, bytes]:
    # sqlite orders text by its bytes.
    step, name, _ = row
    return step, str(name).encode("utf-8", "surrogatepass")
