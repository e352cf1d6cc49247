"""How many held-out examples of a source were also trained on, as `overlap.py` counted it and the ledger keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnlab.data.audit.overlap import LEAST_LINE

from ..ledger.database import Ledger

KIND = "overlap"
"""What the ledger calls such an event."""


@dataclass(frozen=True)
class SourceOverlap:
    """How many of a source's held-out examples stand in what is trained on, and the hashes of both."""

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
    """Held-out documents that are not looked for: headings recur without saying anything."""

    @property
    def question(self) -> tuple[Any, ...]:
        """What was asked, whatever the answer is."""
        return self.source, self.unit, self.train, self.dev, self.num_train, self.num_dev, self.column

    @property
    def share(self) -> float:
        """The share of held-out examples that are trained on."""
        return self.num_found / self.num_held_out if self.num_held_out else 0.0

    @property
    def sentence(self) -> str:
        """What is said of it."""
        aside = f" ({self.num_short:,} headings or of fewer than {LEAST_LINE} words aside)" if self.num_short else ""
        return (
            f"{self.num_found:,} of {self.num_held_out:,} {self.unit}s that '{self.source}' holds out{aside} stand "
            f"also in what it trains on ({self.share:.2%}), whatever their case and white space"
        )


def noted_overlaps(ledger: Ledger, contents: Mapping[str, Mapping[str, str]]) -> list[SourceOverlap]:
    """Return what was counted of data with these hashes, the newest of each source and unit."""
    noted = [SourceOverlap(**json.loads(said)) for said in ledger.events(KIND)]
    found = {
        (one.source, one.unit): one
        for one in noted if dict(contents.get(one.source, {})) == {"train": one.train, "dev": one.dev}
    }  # fmt: skip
    return list(found.values())
