"""An arm of which only mean, SD and number of seeds were published."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab.errors import StatisticsError

from .estimate import sd_of
from .scores import LARGEST, Arm


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation (n − 1) and number of seeds of one arm."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, arm: Arm) -> Summary:
        """Sum an arm up."""
        return cls(float(arm.per_seed.mean()), sd_of(arm.per_seed), arm.num_seeds)

    def check(self, name: str) -> None:
        """Raise one clear error where these are no mean, SD and number of seeds."""
        if not (isinstance(self.n, int) and self.n >= 1):
            raise StatisticsError(f"the {name}'s number of seeds must be a whole number from 1 on, and {self.n!r} came")
        if not (math.isfinite(self.mean) and abs(self.mean) <= LARGEST):
            raise StatisticsError(f"the {name}'s mean must be a number, and {self.mean!r} came")
        if self.n > 1 and not (math.isfinite(self.sd) and 0 <= self.sd <= LARGEST):
            raise StatisticsError(f"the {name}'s SD must be a number from 0 on, and {self.sd!r} came")

    def moments(self) -> tuple[float, float, int]:
        """Return mean, SD and number; the SD of one seed is unknown."""
        return self.mean, self.sd if self.n > 1 else math.nan, self.n

    def __str__(self) -> str:
        shown = "" if math.isnan(self.sd) else f" ± {self.sd:.4g}"
        return f"{self.mean:.5g}{shown} (n = {self.n})"
