"""Held-out examples that were trained on, as a study counted them when it ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .finding import IntegrityFinding, IntegrityKind

if TYPE_CHECKING:
    from ..answers.study_folder import Record

FAULT = 0.01
"""From this share on it is a fault: memorised examples can change an accuracy by as much, and many studies look for one
point. Less is only noted, since published datasets contain some such rows."""


def check_held_out(record: Record) -> Iterator[IntegrityFinding]:
    """Report the overlap of each source."""
    for one in record.overlaps:
        if one.num_found:
            data = {"source": one.source, "share": one.share, "num_held_out": one.num_held_out}
            yield IntegrityFinding(
                IntegrityKind.TRAINED_ON_HELD_OUT, one.sentence, is_fault=one.share >= FAULT, data=data
            )
