"""Results in the ledger that do not belong to the current version of the study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from .finding import IntegrityFinding, IntegrityKind, list_first

if TYPE_CHECKING:
    from ..answers.study_folder import Record
    from ..ledger.database import Ledger


def left_out(ledger: Ledger, planned: Collection[str]) -> Counter[str]:
    """Count, by arm, the results of runs that are not planned."""
    results = ledger.results()
    return Counter(row.arm for row in ledger.runs() if row.id in results and row.id not in planned)


def sentence(counts: Counter[str]) -> str:
    """Describe the results of other versions."""
    whose = list_first([f"{number} of '{arm}'" for arm, number in counts.items()])
    number = sum(counts.values())
    return (
        f"{number} {'result is' if number == 1 else 'results are'} not of the study as it is now, but of versions with "
        f"other settings, data or phase files: {whose}"
    )


def check_left_out(record: Record) -> Iterator[IntegrityFinding]:
    """Find results of other versions of the study."""
    counts = left_out(record.ledger, {run.id for run in record.runs})
    if counts:
        said = f"{sentence(counts)}; if a version was chosen by its results, say so with the verdict"
        yield IntegrityFinding(IntegrityKind.RESULTS_LEFT_OUT, said, is_fault=False, data={"arms": dict(counts)})
