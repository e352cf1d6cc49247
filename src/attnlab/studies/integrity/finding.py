"""What an integrity check finds: of which kind, one sentence, where to look, and whether it is a fault."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class IntegrityKind(Enum):
    """What a finding is about; the value is its title for readers."""

    REPEATED_VALUES = "repeated values"
    MIXED_UNITS = "mixed units"
    CHECKS_LEFT_OUT = "checks left out"
    ONE_ANSWER = "one answer only"
    IMPOSSIBLE_VALUES = "impossible values"
    SPREAD_OF_ONE_SEED = "spread of one seed"
    OUTLYING_SEED = "outlying seed"
    MISSING_SCORES = "runs without a score"
    DIFFERENT_BUDGETS = "different budgets"
    DIFFERENT_SETTINGS = "different settings"
    DIFFERENT_PARAMETERS = "different parameters"
    TOO_FEW_SEEDS = "too few seeds"
    SUMMARY_DIFFERS = "summary differs"
    SUMMARY_AGREES = "summary agrees"
    AVERAGE_DIFFERS = "average differs"
    DIFFERENCE_DIFFERS = "difference differs"
    ONLY_MEANS = "only means"
    LEAK = "a leaking arm"
    FAILED_AUDIT = "a failed audit"
    MISSING_AUDIT = "a missing audit"
    TRAINED_ON_HELD_OUT = "trained on what is held out"
    RESULTS_LEFT_OUT = "results left out"


@dataclass(frozen=True)
class IntegrityFinding:
    """One result of a check. `places` say where to look, `data` is for programs."""

    kind: IntegrityKind
    sentence: str
    is_fault: bool = True
    places: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def check(self) -> str:
        """The title of the check, for readers."""
        return self.kind.value

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        kind = {"kind": self.kind.name.lower(), "check": self.check, "is_fault": self.is_fault}
        return {**kind, "sentence": self.sentence, "places": list(self.places), **self.data}


def list_first(items: list[str], most: int = 4) -> str:
    """Write the first items with commas between, and how many more there are."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
