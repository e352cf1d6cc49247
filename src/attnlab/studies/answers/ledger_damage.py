"""Why a ledger cannot be read: looked for only after an error, to tell a damaged file from a bug of attnlab."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import UnionType
from typing import Any

from pydantic import TypeAdapter

from attnlab.errors import AttnlabError, StudyError
from attnlab.inputs import parse_json
from attnlab.training import Result, RunSpec
from attnlab.training.plain import decode_nonfinite

from ..file.design import IS_RECORDED, Design
from ..ledger.database import TABLES
from .registration import REGISTRATION, VERDICT, Declaration

_TYPES = {"TEXT": str, "INTEGER": int, "REAL": float, "BLOB": bytes}


@contextmanager
def explain_damage(path: Path) -> Iterator[None]:
    """Turn an error that a damaged ledger causes into a StudyError that names the damage; leave others as they are."""
    try:
        yield
    except (AttnlabError, OSError):
        raise
    except Exception as error:
        damage = find_damage(path)
        if not damage:
            raise
        raise StudyError(f"{path} is damaged: {damage}; restore it from a copy, or start the study anew") from error


def find_damage(path: Path) -> str:
    """Return what is wrong with the file or the rows of a ledger; empty if nothing is."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            (answer,) = base.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                return str(answer).strip().splitlines()[-1]
            return next(_check_rows(base), "") or next(_check_plan(base), "")
    except sqlite3.Error as error:
        return str(error)


def _check_rows(base: sqlite3.Connection) -> Iterator[str]:
    for table, columns in TABLES.items():
        declared = re.findall(r"(\w+) (TEXT|INTEGER|REAL|BLOB)", columns)
        for number, *cells in base.execute(f"SELECT rowid, * FROM {table}"):
            for (name, kind), cell in zip(declared, cells, strict=False):
                if not _has_type(cell, kind):
                    yield f"row {number} of '{table}' has a {name} of the wrong type"
            row = dict(zip((name for name, _ in declared), cells, strict=False))
            try:
                _CHECKS.get(table, _accept)(row)
            except (AttnlabError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                yield f"row {number} of '{table}' is not what attnlab writes ({str(error).splitlines()[0][:100]})"


def _check_plan(base: sqlite3.Connection) -> Iterator[str]:
    """Yield the runs of the last plan that are missing, or that its design does not know."""
    events = dict(base.execute("SELECT kind, said FROM events WHERE kind IN ('design', 'plan') ORDER BY number"))
    if len(events) == 2:
        design = _read_design(events["design"])
        known = {"arm": set(design.arms), "size": set(design.sizes), "phase": {phase.name for phase in design.phases}}
        rows = {id: place for id, *place in base.execute("SELECT id, arm, size, phase FROM runs")}
        for id in parse_json(events["plan"])["runs"]:
            if id not in rows:
                yield f"the planned run {id} is missing in 'runs'"
                continue
            for (what, names), name in zip(known.items(), rows[id], strict=True):
                if name not in names:
                    yield f"the run {id} is of a {what} '{name}' that the study does not have"


def _read_design(text: str) -> Design:
    return Design.model_validate(_parse(text, dict), strict=False, context={IS_RECORDED: True})


def _has_type(cell: Any, kind: str) -> bool:
    return isinstance(cell, _TYPES[kind])


def _accept(row: Mapping[str, Any]) -> None:
    """Accept rows of a table without JSON."""


def _check_run(row: Mapping[str, Any]) -> None:
    config = dict(_parse(row["config"], dict))
    del config["parent"]
    RunSpec.of(config)


def _check_result(row: Mapping[str, Any]) -> None:
    TypeAdapter(Result).validate_python(decode_nonfinite(_parse(row["result"], dict)))


def _check_event(row: Mapping[str, Any]) -> None:
    kind, text = row["kind"], row["said"]
    if kind == "design":
        _read_design(text)
    elif kind == REGISTRATION:
        TypeAdapter(Declaration).validate_python(_parse(text, dict))
    elif kind == VERDICT:
        content = _parse(text, dict)
        TypeAdapter(Declaration).validate_python(content["declaration"])
        _ = content["results"], content["is_look"]
    elif kind == "plan":
        content = _parse(text, dict)
        TypeAdapter(list[str]).validate_python(content["runs"])
        TypeAdapter(dict[str, str]).validate_python(content["obstacles"])
        TypeAdapter(dict[str, Any]).validate_python(content["data"])
        TypeAdapter(dict[str, list[str]]).validate_python(content.get("audits") or {})
    elif kind == "started":
        _parse(text, dict)


def _check_pairing(row: Mapping[str, Any]) -> None:
    hashes = _parse(row["hashes"], dict)
    TypeAdapter(dict[str, str]).validate_python(hashes.get("weights", {}))
    TypeAdapter(dict[str, list[int]]).validate_python(hashes.get("shapes", {}))
    TypeAdapter(list[str]).validate_python([hashes.get(name, "") for name in ("batches", "evaluation")])


def _check_examples(row: Mapping[str, Any]) -> None:
    TypeAdapter(list[str]).validate_python(_parse(row["ids"], list))
    TypeAdapter(list[str] | None).validate_python(parse_json(row["clusters"]))


_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "runs": _check_run, "results": _check_result, "events": _check_event, "pairings": _check_pairing,
    "examples": _check_examples, "metrics": lambda row: _parse(row["line"], dict),
    "answers": lambda row: _parse(row["answers"], dict | list),  # a list in ledgers of older versions
    "audits": lambda row: _parse(row["findings"], list),
}  # fmt: skip


def _parse(text: Any, kind: type | UnionType) -> Any:
    value = parse_json(text)
    if not isinstance(value, kind):
        raise json.JSONDecodeError(f"{'a list' if kind is list else 'an object'} is needed", "", 0)
    return value
