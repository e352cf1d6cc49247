"""The overlap of the held-out and training examples of a source, counted by `overlap.py` and kept in the ledger."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnlab.data.audit.overlap import LEAST_LINE

from ..ledger.database import Ledger

KIND = "overlap"
"""The kind of its events in the ledger."""


@dataclass(frozen=True)
class SourceOverlap:
    """How many held-out examples of a source are also trained on, and the hashes of both splits."""

    source: str
    unit: str
    """What an example is: a document, a text, a question with its context, a sequence."""
    train: str
    dev: str
    num_train: int | None
    num_dev: int | None
    column: str | None = None
    num_held_out: int = 0
    num_found: int = 0
    num_short: int = 0
    """Held-out documents that are not counted: headings recur without meaning an overlap."""

    @property
    def question(self) -> tuple[Any, ...]:
        """What identifies it, without the counts."""
        return self.source, self.unit, self.train, self.dev, self.num_train, self.num_dev, self.column

    @property
    def share(self) -> float:
        """The share of held-out examples that are trained on."""
        return self.num_found / self.num_held_out if self.num_held_out else 0.0

    @property
    def sentence(self) -> str:
        """The counts in words."""
        short = f"{self.num_short:,} headings or texts of fewer than {LEAST_LINE} words"
        aside = f" (not counting {short})" if self.num_short else ""
        return (
            f"{self.num_found:,} of {self.num_held_out:,} {self.unit}s that '{self.source}' holds out{aside} are "
            f"also among those it trains on ({self.share:.2%}), ignoring case and white space"
        )


def read_overlaps(ledger: Ledger, contents: Mapping[str, Mapping[str, str]]) -> list[SourceOverlap]:
    """Return the overlaps of data with these hashes, the newest of each source and unit."""
    newest = {
        (overlap.source, overlap.unit): overlap
        for overlap in list_overlaps(ledger)
        if _name_splits(contents.get(overlap.source, {})) == (overlap.train, overlap.dev)
    }
    return list(newest.values())


def list_overlaps(ledger: Ledger) -> list[SourceOverlap]:
    """Return all overlaps that a study has counted, oldest first."""
    return [SourceOverlap(**json.loads(record)) for record in ledger.events(KIND)]


def _name_splits(hashes: Mapping[str, str]) -> tuple[str | None, str | None]:
    return hashes.get("train"), hashes.get("dev")  # a source may have other parts, such as tune
