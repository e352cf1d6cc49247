"""The audit of a line by layer: each of its mechanisms is audited, and the worst finding of each check counts."""

import dataclasses
from collections.abc import Mapping

from attnlab.mechanisms import LayeredMechanism, Mechanism

from .finding import Audit, Finding, FindingPart, Findings


def merge_audits(line: LayeredMechanism, audits: Mapping[Mechanism, Audit]) -> Audit:
    """Make one audit of those of a line's mechanisms."""
    names = dict.fromkeys(name for audit in audits.values() for name in audit.findings)
    findings = [
        _merge_findings(
            {mechanism: audit.findings[name] for mechanism, audit in audits.items() if name in audit.findings}
        )
        for name in names
    ]
    causal = next(audit.causal for audit in audits.values())
    return Audit(str(line), causal, Findings(findings), sum(audit.seconds for audit in audits.values()))


def _merge_findings(findings: Mapping[Mechanism, Finding]) -> Finding:
    """Return the worst finding, with the mechanism it is about and the measured parts of all."""
    mechanism, worst = max(findings.items(), key=lambda pair: (not pair[1].passed, _compute_excess(pair[1])))
    intro = f"All {len(findings)} mechanisms pass; of " if worst.passed and worst.judged and len(findings) > 1 else ""
    parts = [_name_part(part, owner) for owner, finding in findings.items() for part in finding.parts]
    return dataclasses.replace(worst, sentence=f"{intro}'{mechanism}': {worst.sentence}", parts=tuple(parts))


def _compute_excess(finding: Finding) -> float:
    return FindingPart(finding.name, finding.figure, finding.bound).excess


def _name_part(part: FindingPart, mechanism: Mechanism) -> FindingPart:
    return dataclasses.replace(part, name=f"{part.name}, '{mechanism}'")
