"""The sqlite file of a ledger: rows are only ever added, each with a SHA-256 that is verified when the row is read.

A file or a folder that cannot be written is opened for reading only. Ledgers of older versions have no hashes.
"""

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import StudyError
from attnlab.ownership import describe_risk

from .disk import refuse_network

DIGESTS = "digests"
"""The table of the hashes: one for each row, and one for all metrics of a run of one kind."""
COLUMNS = "source TEXT NOT NULL, key INTEGER NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (source, key)"
FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_WRITE")
"""Errors of sqlite on a full disk; it calls most of them disk I/O error."""
Values = tuple[Any, ...]


class Connection:
    """An open ledger. tables: the columns of each table, made if the file is new. is_checked: its structure was."""

    def __init__(self, path: Path, tables: Mapping[str, str], *, is_new: bool, is_checked: bool = False) -> None:
        refuse_network(path)
        if not is_new and not path.exists():
            raise StudyError(f"{path.parent} holds no study: it has no {path.name}")
        self.path, self.tables = path, {**tables, DIGESTS: COLUMNS}
        for file in (path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", "-journal")):
            if file.is_symlink():
                raise StudyError(f"{file} is a symbolic link, which may lead anywhere; remove it")
        risks = [describe_risk(place) for place in (path.parent, path)] if is_new else []
        if any(risks):
            raise StudyError("; ".join(dict.fromkeys(filter(None, risks))))
        self.is_read_only = not is_new and not (_is_writable(path.parent) and _is_writable(path))
        with ExitStack() as stack:
            try:
                self.base = self._open_to_read(stack) if self.is_read_only else _connect(path)
            except (sqlite3.Error, OSError) as error:
                raise StudyError(f"{path} cannot be used as a ledger: {error}") from error
            stack.callback(self.base.close)
            self.has_digests = self._set_up(is_new, is_checked)
            self._resources = stack.pop_all()

    def close(self) -> None:
        """Close the file."""
        self._resources.close()

    def _open_to_read(self, stack: ExitStack) -> sqlite3.Connection:
        """Open a ledger that cannot be written; the latest rows of one that was not closed are in a file beside it."""
        address, wal = self.path.absolute().as_uri(), self.path.with_name(f"{self.path.name}-wal")
        if not wal.exists():
            return _connect(f"{address}?immutable=1", uri=True)
        base = _connect(f"{address}?mode=ro", uri=True)
        try:
            base.execute("SELECT name FROM sqlite_master").fetchall()
        except sqlite3.OperationalError:  # sqlite would need to write a third file, of shared memory
            base.close()
        else:
            return base
        copies = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attnlab-")))
        for file in (self.path, wal):
            shutil.copyfile(file, copies / file.name)
        base = _connect(copies / self.path.name)
        base.execute("PRAGMA query_only=ON")
        return base

    def _set_up(self, is_new: bool, is_checked: bool) -> bool:
        """Make the tables of a new file, or check the structure of an old one; return whether its rows have hashes."""
        # Without recursive triggers, INSERT OR REPLACE would remove a row without calling the trigger.
        settings = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON")
        for setting in () if self.is_read_only else settings:
            ((mode, *_),) = self.fetch(f"PRAGMA {setting}") or [("",)]
            if setting == "journal_mode=WAL" and mode != "wal":
                raise StudyError(f"{self.path}: the file system has no shared memory for a ledger; use a local disk")
        tables = {row[0] for row in self.fetch("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "facts" not in tables:
            raise StudyError(f"{self.path} is not a ledger but another database; give the study another folder")
        if tables and not is_checked and (problem := self.fetch("PRAGMA integrity_check(1)")) != [("ok",)]:
            raise self._explain_damage(str(problem[0][0]).splitlines()[-1] if problem else "sqlite cannot check it")
        if is_new and not tables:
            self._make_tables()
            return True
        return DIGESTS in tables

    def _make_tables(self) -> None:
        with self.transaction():
            for name, columns in self.tables.items():
                self.execute(f"CREATE TABLE {name} ({columns})")
                for what in ("UPDATE", "DELETE"):
                    self.execute(
                        f"CREATE TRIGGER no_{what.lower()}_of_{name} BEFORE {what} ON {name} "
                        f"BEGIN SELECT RAISE(ABORT, 'the ledger is only ever added to'); END"
                    )
            self.has_digests = True
            self._write_first_rows()

    def _write_first_rows(self) -> None:
        """Write the rows that a new ledger begins with."""

    def execute(self, command: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a command of SQL; an error of the file becomes a StudyError."""
        with self._explain_errors():
            return self.base.execute(command, values)

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

    def insert(self, table: str, *values: Any) -> int:
        """Add a row unless its key is there already; return its number, or 0. None: a number that sqlite chooses."""
        if not self.base.in_transaction:
            with self.transaction():
                return self.insert(table, *values)
        marks = ", ".join("?" * len(values))
        added = self.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)
        if not added.rowcount:
            return 0
        number = int(added.lastrowid or 0)
        self.insert_digest(table, number, [(number if value is None else value for value in values)])
        return number

    def insert_digest(self, table: str, key: int | str, rows: Iterable[Iterable[Any]]) -> None:
        """Add the hash of rows."""
        if self.has_digests:
            self.execute(f"INSERT INTO {DIGESTS} VALUES (?, ?, ?)", (table, key, hash_rows(rows)))

    def select(self, table: str, where: str = "", *values: Any) -> list[Values]:
        """Return whole rows of a table; a row that differs from what was added is an error."""
        if not self.has_digests:
            return self.fetch(f"SELECT * FROM {table} {where}", values)
        joined = f"{table} LEFT JOIN {DIGESTS} ON source = ? AND key = {table}.rowid"
        rows = self.fetch(f"SELECT {DIGESTS}.sha256, {table}.* FROM {joined} {where}", (table, *values))
        for digest, *row in rows:
            if digest != hash_rows([row]):
                raise self._explain_damage(f"a row of its table '{table}' is not what was written")
        return [row[1:] for row in rows]

    def check_digest(self, table: str, key: str, rows: Iterable[Iterable[Any]]) -> None:
        """Compare rows with their hash; no rows have none."""
        rows = list(rows)
        if self.has_digests:
            stored = self.fetch(f"SELECT sha256 FROM {DIGESTS} WHERE source = ? AND key = ?", (table, key))
            if stored != ([(hash_rows(rows),)] if rows else []):
                raise self._explain_damage(f"rows of its table '{table}' are not what was written")

    def fetch(self, query: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return the rows of a query, without verifying them."""
        with self._explain_errors():  # a damaged page is found when it is read
            return self.base.execute(query, values).fetchall()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:  # in a message of sqlite about a damaged page
            raise self._explain_damage("sqlite cannot read it") from error
        except sqlite3.Error as error:
            if "not a database" in str(error):
                raise StudyError(
                    f"{self.path} cannot be used as a ledger: {error}; move it away to start again"
                ) from error
            if any(sign in str(error) for sign in ("malformed", "corrupt", "decode", "out of range")):
                raise self._explain_damage(str(error)) from error
            is_full = getattr(error, "sqlite_errorname", "") in FULL
            reason = "the disk is full; free some space and give the same command again" if is_full else error
            raise StudyError(f"{self.path} cannot be used as a ledger: {reason}; its content is intact") from error

    def _explain_damage(self, problem: str) -> StudyError:
        return StudyError(
            f"{self.path} is damaged: {problem}; restore it from a copy, or move it away and run the study again: runs "
            "that have ended are read from their folders"
        )


def hash_rows(rows: Iterable[Iterable[Any]]) -> bytes:
    """Return the SHA-256 of rows."""
    digest = hashlib.sha256()
    for row in rows:
        for value in row:
            content = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(content))
            digest.update(content)
    return digest.digest()


def _connect(place: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    # The server of `attnlab watch` reads in several threads, one at a time.
    return sqlite3.connect(place, isolation_level=None, timeout=60, uri=uri, check_same_thread=False)


def _is_writable(path: Path) -> bool:
    is_effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=is_effective)
