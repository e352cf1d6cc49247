"""The audits of every arm, alone and installed, and the map of each leak."""

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
    """One audit of an arm: its subject, the verdict of each check, and what is wrong, in sentences."""

    arm: str
    subject: str
    verdicts: dict[str, str]
    wrong: Sequence[str]
    remarks: Sequence[str]
    """Reported, not judged."""

    @property
    def is_sound(self) -> bool:
        """Whether it was made and found nothing wrong."""
        return bool(self.verdicts) and not self.wrong


@dataclass(frozen=True)
class LeakMap:
    """The map of a leak as a figure, or the reason for none."""

    figure: Figure | None
    note: str = ""


def list_audits(record: Record) -> list[ArmAudit]:
    """Return every audit of every arm."""
    audits = []
    for arm in list_arms(record):
        for key in record.audits.get(arm, ()):
            findings = record.audit_of(key)
            judged = [item for item in findings if item.get("judged", True) or not item["passed"]]
            failed = [item for item in judged if not item["passed"]]
            wrong = [
                item["sentence"] + (f" Cause: {where}." if (where := item.get("where")) else "") for item in failed
            ]
            remarks = [item["sentence"] for item in findings if read_kind(item) == "installed_model"]
            audits.append(ArmAudit(arm, key, {item["name"]: item["verdict"] for item in judged}, wrong, remarks))
    return audits


def list_leak_maps(record: Record) -> list[LeakMap]:
    """Return a map for every mechanism that leaks by itself, and a note on arms that leak only in a model."""
    maps = []
    for arm in list_arms(record):
        leaks = {
            remove_mark(key): item for key in record.audits.get(arm, ()) for item in record.audit_of(key)
            if read_kind(item) == "leak" and not item["passed"]
        }  # fmt: skip
        lines = [line for line in list_lines(record.design, arm) if line in leaks]
        for number, line in enumerate(lines):
            maps.append(_make_leak_map(arm, line, leaks[line], f"-{number}" if number else ""))
        if leaks and not lines:
            maps.append(LeakMap(None, f"{arm} leaks only if installed; a map is of a mechanism by itself."))
    return maps


def _make_leak_map(arm: str, line: str, finding: dict[str, Any], ending: str) -> LeakMap:
    strengths, note = finding.get("data", {}).get("map"), ""
    if strengths is None:
        # Imported here because only a ledger without the map needs torch.
        from attnlab.audits import audit

        try:
            strengths = audit(line, causal=True, checks=["causal leak"]).findings["causal leak"].data.get("map")
        except AttnlabError as error:
            return LeakMap(None, f"The map of {arm} cannot be drawn, since its mechanism is not known here: {error}")
        if strengths is None:
            return LeakMap(None, f"There is no map of {arm}: its outputs are not finite.")
        note = " The ledger has no map: it was computed again for this report, from the same random tokens."
    rows = [[float(strength) for strength in row] for row in strengths]
    caption = "Orange is an output that depends on a later token, so that its figures are invalid." + note
    return LeakMap(Figure(
        LEAKS, f"{LEAKS}-{arm}{ending}", f"The leak of {arm}", caption,
        lambda theme: soundness.draw(arm, [line], [soundness.leak_map(rows, theme)], theme),
    ))  # fmt: skip
