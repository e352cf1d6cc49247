"""Arms that see future tokens, by the audits of their mechanism alone and in a model; and other audits that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...plan.audit_keys import list_lines
from ..finding import IntegrityFinding, IntegrityKind, list_first

if TYPE_CHECKING:
    from ...answers.study_folder import Record

UNTYPED = {"causal leak": "leak", "installed model": "installed_model"}
"""The kinds of findings in ledgers from before findings had a kind, by name."""


def read_kind(finding: Mapping[str, Any]) -> str:
    """Return the kind of an audit's finding that was read from a ledger."""
    return str(finding.get("kind") or UNTYPED.get(finding["name"], "other"))


def check_leaks(record: Record) -> Iterator[IntegrityFinding]:
    """Look at the audits of every arm."""
    for arm in record.design.arms:
        findings = [(key, finding) for key in record.audits.get(arm, ()) for finding in record.audit_of(key)]
        failed = [(key, finding) for key, finding in findings if not finding["passed"]]
        leaks = [(key, finding) for key, finding in failed if read_kind(finding) == "leak"]
        if arm in record.obstacles or leaks:
            keys = list(dict.fromkeys(key for key, _ in leaks))
            reason = str(leaks[0][1]["sentence"]).rstrip(".") if leaks else record.obstacles[arm]
            where = f" (audited: {list_first(keys)})" if keys else ""
            sentence = f"arm '{arm}': {reason}{where}; this arm is not compared"
            yield IntegrityFinding(IntegrityKind.LEAK, sentence, data={"arm": arm, "audits": keys})
        others = [f"{finding['name']} of {key}" for key, finding in failed if read_kind(finding) != "leak"]
        if others:
            sentence = f"arm '{arm}': {list_first(others)}"
            yield IntegrityFinding(IntegrityKind.FAILED_AUDIT, sentence, is_fault=False, data={"arm": arm})


def check_audited(record: Record) -> Iterator[IntegrityFinding]:
    """Find arms that could not be audited in every size that they are installed in."""
    design = record.design
    counts = {arm: len(record.audits.get(arm, ())) for arm in design.arms}
    missing = [f"'{arm}'" for arm in counts if counts[arm] < len(list_lines(design, arm)) + len(design.sizes)]
    if missing:
        sentence = f"arms that were not audited in the model of every size: {list_first(missing)}"
        yield IntegrityFinding(IntegrityKind.MISSING_AUDIT, sentence, is_fault=False)
