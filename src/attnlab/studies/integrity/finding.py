"""What an integrity check finds: one sentence, where to look, and whether it is a fault.

Most checks of this folder need only a table. Those that need a study, such as a leaking arm or test text in the
training set, report in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One result of a check. `check` is its name, `places` say where to look, `data` is for programs."""

    check: str
    sentence: str
    is_fault: bool = True
    places: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {
            "check": self.check,
            "is_fault": self.is_fault,
            "sentence": self.sentence,
            "places": list(self.places),
            **self.data,
        }


def list_first(items: list[str], most: int = 4) -> str:
    """Write the first items with commas between, and how many more there are."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
