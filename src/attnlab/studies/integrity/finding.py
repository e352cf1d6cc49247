"""What an integrity check finds: one sentence, where to look, and whether it is a fault.

The checks of this folder need a table alone. What only a study can know, a leaking arm or test text that was trained
on, is said by it in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One thing that was found. `check` names the question, `places` where to look, `data` is for programs."""

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


def listed(things: list[str], most: int = 4) -> str:
    """Write some things with commas between, and how many more there are."""
    shown = ", ".join(things[:most])
    return f"{shown} and {len(things) - most} more" if len(things) > most else shown
