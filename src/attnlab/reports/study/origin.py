"""What was run: the study file and plugins, versions and machine of every start, runs, and the command."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from attnlab.studies.answers.study_folder import FILE, Record

from .results import find_status

NOT_FACTS = {"command", "plugins"}
CHANGING = ("--budget", "--set")
"""Options that replace values of the study file."""


@dataclass(frozen=True)
class PluginVersion:
    """One content of a plugin file, at some of the starts."""

    sha256: str
    text: str
    starts: str
    """Which starts, if the study was started more than once."""


@dataclass(frozen=True)
class PluginFile:
    """A plugin file with every content that it had."""

    name: str
    versions: Sequence[PluginVersion]
    is_changed: bool


@dataclass(frozen=True)
class StudyOrigin:
    """The origin of the numbers of a report."""

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
    """The options that changed the study of the file."""
    own_files: Sequence[PluginFile]


def describe_origin(record: Record) -> StudyOrigin:
    """Collect the origin of the numbers."""
    last = record.starts[-1] if record.starts else {}
    titles = {run.id: run.title for run in record.runs}
    file = record.folder / FILE
    if file.exists():
        note = _describe_changes(str(last.get("command", "")))
        name, text = FILE, file.read_text(encoding="utf-8", errors="replace")
    else:
        note = ""  # a design has the values that were used
        name, text = "the design in the ledger", json.dumps(record.design.model_dump(mode="json"), indent=2)
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
    words = pairwise(shlex.split(command))
    given = [f"{option} {shlex.quote(value)}" for option, value in words if option in CHANGING]
    if not given:
        return ""
    return f"What was run is this file with {', '.join(given)}, which replace values below."


def _list_plugin_files(record: Record) -> list[PluginFile]:
    starts = [list(start.get("plugins", ())) for start in record.starts]
    files = []
    for name in dict.fromkeys(plugin["file"] for plugins in starts for plugin in plugins):
        hashes = [[plugin["sha256"] for plugin in plugins if plugin["file"] == name] for plugins in starts]
        texts = {plugin["sha256"]: plugin["text"] for plugins in starts for plugin in plugins if plugin["file"] == name}
        versions = [PluginVersion(sha256, text, _describe_starts(sha256, hashes)) for sha256, text in texts.items()]
        files.append(PluginFile(name, versions, len({tuple(contents) for contents in hashes if contents}) > 1))
    return files


def _describe_starts(sha256: str, hashes: Sequence[Sequence[str]]) -> str:
    numbers = [str(number) for number, contents in enumerate(hashes, 1) if sha256 in contents]
    if len(numbers) == len(hashes):
        return "at every start" if len(hashes) > 1 else ""
    return f"at start {', '.join(numbers)} of {len(hashes)}"


def _list_changed_facts(record: Record) -> list[tuple[str, str]]:
    # The results of one study may come from several versions.
    changed = []
    for fact in dict.fromkeys(name for start in record.starts for name in start):
        values = list(dict.fromkeys(str(start.get(fact)) for start in record.starts))
        if fact not in NOT_FACTS and len(values) > 1:
            changed.append((f"{fact}, over all starts", ", ".join(values)))
    return changed
