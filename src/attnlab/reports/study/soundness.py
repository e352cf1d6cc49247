"""What audits found of every arm, alone and installed, and the map of a leak where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.charts import soundness
from attnlab.errors import AttnlabError
from attnlab.studies.answers.study_folder import Record
from attnlab.studies.integrity.study.audits import read_kind
from attnlab.studies.plan.audit_keys import list_lines, remove_mark

from .figures import LEAKS, Figure
from .results import list_arms


@dataclass(frozen=True)
class ArmAudit:
    """One audit of an arm: of what, and each check's verdict; what was wrong, in sentences."""

    arm: str
    subject: str
    verdicts: dict[str, str]
    wrong: Sequence[str]
    said: Sequence[str]
    """What is reported without being judged."""


@dataclass(frozen=True)
class LeakMap:
    """The map of a leak as a figure, or why there is none."""

    figure: Figure | None
    note: str = ""


def list_audits(record: Record) -> list[ArmAudit]:
    """Return every audit of every arm."""
    found = []
    for arm in list_arms(record):
        for key in record.audits.get(arm, ()):
            findings = record.audit_of(key)
            judged = [one for one in findings if one.get("judged", True) or not one["passed"]]
            wrong = [
                " ".join(filter(None, (one["sentence"], one.get("where", "")))) for one in judged if not one["passed"]
            ]
            said = [one["sentence"] for one in findings if read_kind(one) == "installed_model"]
            found.append(ArmAudit(arm, key, {one["name"]: one["verdict"] for one in judged}, wrong, said))
    return found


def list_leak_maps(record: Record) -> list[LeakMap]:
    """Return a map for every mechanism that leaks by itself, and a word about arms that leak in a model alone."""
    found = []
    for arm in list_arms(record):
        leaks = {
            remove_mark(key): one for key in record.audits.get(arm, ()) for one in record.audit_of(key)
            if read_kind(one) == "leak" and not one["passed"]
        }  # fmt: skip
        own = [line for line in list_lines(record.design, arm) if line in leaks]
        found += [
            _make_leak_map(arm, line, leaks[line], f"-{number}" * (number > 0)) for number, line in enumerate(own)
        ]
        if leaks and not own:
            found.append(
                LeakMap(None, f"{arm} leaks where it is installed alone, and a map is of a mechanism by itself.")
            )
    return found


def _make_leak_map(arm: str, line: str, finding: dict[str, Any], ending: str) -> LeakMap:
    """Draw the map that the ledger keeps; where it keeps none, the mechanism is audited once more."""
    strengths, note = finding.get("data", {}).get("map"), ""
    if strengths is None:
        # Imported here because a report of what the ledger keeps needs no torch.
        from attnlab.audits import audit

        try:
            strengths = audit(line, causal=True, checks=["causal leak"]).findings["causal leak"].data["map"]
        except AttnlabError as error:
            return LeakMap(None, f"The map of {arm} cannot be drawn, since its mechanism is not known here: {error}")
        note = " The ledger keeps no map: it was drawn anew for this report, from the same random tokens."
    rows = [[float(strength) for strength in row] for row in strengths]
    caption = "Orange is an output that depends on a later token: its figures are of no use." + note
    return LeakMap(Figure(
        LEAKS, f"{LEAKS}-{arm}{ending}", f"The leak of {arm}", caption,
        lambda theme: soundness.draw(arm, [line], [soundness.leak_map(rows, theme)], theme),
    ))  # fmt: skip
