"""Held-out examples that were trained on, as a study counted them when it ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .finding import Finding

if TYPE_CHECKING:
    from ..record import Record

CHECK = "trained on what is held out"
FAULT = 0.01
"""The share from which on it is a fault: examples that were learnt by heart can move an accuracy by as much, and a
point is what many a study looks for. Of less a word is said, since published sets have some such rows."""


def check_held_out(record: Record) -> Iterator[Finding]:
    """Look at what each source holds out."""
    for one in record.overlaps:
        if one.num_found:
            data = {"source": one.source, "share": one.share, "num_held_out": one.num_held_out}
            yield Finding(CHECK, one.sentence, is_fault=one.share >= FAULT, data=data)
