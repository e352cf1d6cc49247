"""What was run: the study's file and those of phases, versions and machine of every start, runs, and the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from attnlab.studies.answers.study_folder import FILE, Record

from .results import find_status

NOT_FACTS = {"command", "plugins"}
CHANGING = ("--budget", "--set")
"""Options that put other values in the place of a study file's."""


@dataclass(frozen=True)
class PluginVersion:
    """A file of the user's own stages, as it was at some starts."""

    sha256: str
    text: str
    starts: str
    """At which of them, where the study was started more than once."""


@dataclass(frozen=True)
class PluginFile:
    """A file of the user's own stages, with every content that it had."""

    name: str
    versions: Sequence[PluginVersion]
    is_changed: bool


@dataclass(frozen=True)
class StudyOrigin:
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
    study_note: str
    """What was run otherwise than the text says."""
    own_files: Sequence[PluginFile]


def describe_origin(record: Record) -> StudyOrigin:
    """Say where the numbers come from."""
    last = record.starts[-1] if record.starts else {}
    titles = {run.id: run.title for run in record.runs}
    file = record.folder / FILE
    if file.exists():
        note = _describe_changes(str(last.get("command", "")))
        name, text = FILE, file.read_text(encoding="utf-8", errors="replace")
    else:
        note = ""  # a design has the values that were taken
        name, text = "the design, as the ledger has it", json.dumps(record.design.model_dump(mode="json"), indent=2)
    facts = [(fact, str(value)) for fact, value in last.items() if fact not in NOT_FACTS and value is not None]
    return StudyOrigin(
        str(last.get("command", "")),
        [*facts, ("starts", f"{len(record.starts)}"), *_list_changed_facts(record)],
        [(run.id, run.title, find_status(record, run)) for run in record.runs],
        [(titles.get(id, id), reason) for id, reason in record.ledger.failures()],
        [(titles[id], reason) for id, reason in record.given_up.items() if id in titles],
        name, text, note, _list_plugin_files(record),
    )  # fmt: skip


def _describe_changes(command: str) -> str:
    """Say which options of a command made the study another one than its file says."""
    words = pairwise(shlex.split(command))
    given = [f"{option} {shlex.quote(value)}" for option, value in words if option in CHANGING]
    if not given:
        return ""
    return f"What was run is this file with {', '.join(given)}, put in the place of values that stand below."


def _list_plugin_files(record: Record) -> list[PluginFile]:
    """Return the files of the user's own stages; a ledger from before they were noted has none."""
    noted = [list(start.get("plugins", ())) for start in record.starts]
    found = []
    for name in dict.fromkeys(one["file"] for some in noted for one in some):
        hashes = [[one["sha256"] for one in some if one["file"] == name] for some in noted]
        texts = {one["sha256"]: one["text"] for some in noted for one in some if one["file"] == name}
        versions = [PluginVersion(sha256, text, _describe_starts(sha256, hashes)) for sha256, text in texts.items()]
        found.append(PluginFile(name, versions, len({tuple(some) for some in hashes if some}) > 1))
    return found


def _describe_starts(sha256: str, hashes: Sequence[Sequence[str]]) -> str:
    """Say at which starts a file had some content."""
    numbers = [str(number) for number, some in enumerate(hashes, 1) if sha256 in some]
    if len(numbers) == len(hashes):
        return "at every start" if len(hashes) > 1 else ""
    return f"at start {', '.join(numbers)} of {len(hashes)}"


def _list_changed_facts(record: Record) -> list[tuple[str, str]]:
    """Say what was different at an earlier start: results of one study may come from several versions."""
    found = []
    for fact in dict.fromkeys(name for start in record.starts for name in start):
        values = list(dict.fromkeys(str(start.get(fact)) for start in record.starts))
        if fact not in NOT_FACTS and len(values) > 1:
            found.append((f"{fact}, over all starts", ", ".join(values)))
    return found
