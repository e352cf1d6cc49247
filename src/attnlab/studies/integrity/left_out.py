"""Results that a ledger has and the study as it was last started has not: versions that were looked at, and left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from .finding import Finding, list_first

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..record import Record

CHECK = "results left out"


def left_out(ledger: Ledger, planned: Collection[str]) -> Counter[str]:
    """Count the results, by arm, of runs that are not among those planned."""
    results = ledger.results()
    return Counter(row.arm for row in ledger.runs() if row.id in results and row.id not in planned)


def sentence(counts: Counter[str]) -> str:
    """Say what was left out."""
    whose = list_first([f"{number} of '{arm}'" for arm, number in counts.items()])
    number = sum(counts.values())
    return (
        f"{number} {'result is' if number == 1 else 'results are'} not of the study as it is now, whose settings, data "
        f"or stage files are others: {whose}"
    )


def check_left_out(record: Record) -> Iterator[Finding]:
    """Find results of other versions of the study."""
    counts = left_out(record.ledger, {run.id for run in record.runs})
    if counts:
        said = f"{sentence(counts)}; whoever chose between versions by their results says so with the verdict"
        yield Finding(CHECK, said, is_fault=False, data={"arms": dict(counts)})
