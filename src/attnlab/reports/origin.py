"""What was run: the study's file, versions and machine of every start, the runs, and the command that repeats it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.studies.record import Record
from attnlab.studies.study import FILE

from .results import status_of

NOT_FACTS = {"command"}


@dataclass(frozen=True)
class Origin:
    """Where a report's numbers come from."""

    command: str
    facts: Sequence[tuple[str, str]]
    runs: Sequence[tuple[str, str, str]]
    """Id, title and status."""
    failures: Sequence[tuple[str, str]]
    """Title and reason of every attempt that failed."""
    given_up: Sequence[tuple[str, str]]
    study_name: str
    study_text: str


def origin_of(record: Record) -> Origin:
    """Say where the numbers come from."""
    last = record.starts[-1] if record.starts else {}
    titles = {run.id: run.title for run in record.runs}
    file = record.folder / FILE
    if file.exists():
        name, text = FILE, file.read_text(encoding="utf-8", errors="replace")
    else:
        name, text = "the design, as the ledger has it", json.dumps(record.design.model_dump(mode="json"), indent=2)
    facts = [(fact, str(value)) for fact, value in last.items() if fact not in NOT_FACTS and value is not None]
    return Origin(
        str(last.get("command", "")),
        [*facts, ("starts", f"{len(record.starts)}"), *changed_since(record)],
        [(run.id, run.title, status_of(record, run)) for run in record.runs],
        [(titles.get(id, id), reason) for id, reason in record.ledger.failures()],
        [(titles[id], reason) for id, reason in record.given_up.items() if id in titles],
        name, text,
    )  # fmt: skip


def changed_since(record: Record) -> list[tuple[str, str]]:
    """Say what was different at an earlier start: results of one study may come from several versions."""
    found = []
    for fact in dict.fromkeys(name for start in record.starts for name in start):
        values = list(dict.fromkeys(str(start.get(fact)) for start in record.starts))
        if fact not in NOT_FACTS and len(values) > 1:
            found.append((f"{fact}, over all starts", ", ".join(values)))
    return found
