"""The question of a comparison, fixed before it is made: threshold, direction, false-positive rate, looks, scale.

On the log scale scores are natural logs, and differences and thresholds are percent changes, 100·(exp(d) − 1). The
threshold is symmetric in logs: a fall from 1.01 to 1 counts as much as a rise from 1 to 1.01.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from attnlab.errors import StatisticsError

from .looks import limit_at, look_limits, sequential_p

ALPHA = 0.05

Looks = Sequence[int] | Literal["open"] | None
"""Numbers of seeds declared beforehand, 'open' for a look after every seed, None for a single look."""
Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Question:
    """The settings of a comparison.

    smallest: the smallest difference worth having, in units of the figure, in percent on the log scale. alpha:
    false-positive rate. obstacle: why the arms cannot be compared, if they cannot. floor: the score of a trivial
    strategy. ceiling: the best possible score. late_gain: how much the arms improved in the last fifth of training, in
    units of `smallest`; None if unknown. condition: how the arms were made comparable, said with BETTER and WORSE, such
    as AS TUNED (3 trials). limits: the lowest and the highest possible score; None if there are none.
    """

    smallest: float = 1.0
    higher_is_better: bool = True
    alpha: float = ALPHA
    looks: Looks = None
    obstacle: str = ""
    scale: Scale = "linear"
    floor: float | None = None
    ceiling: float | None = None
    late_gain: float | None = None
    condition: str = ""
    limits: tuple[float, float] | None = None
    late_gain_of: str = ""
    """The arm of `late_gain`, by its name; empty if it is not named."""

    def __post_init__(self) -> None:
        if not (isinstance(self.smallest, int | float) and 0 < self.smallest < math.inf):
            raise StatisticsError(
                f"smallest={self.smallest!r}: the smallest difference worth having must be a number above 0, in units "
                "of the metric, such as 1.0 for one point of F1 in percent"
            )
        if not (isinstance(self.alpha, float) and 0 < self.alpha < 0.5):
            raise StatisticsError(f"alpha={self.alpha!r} must be a number between 0 and 0.5; 0.05 is usual")
        if isinstance(self.looks, str) and self.looks != "open":
            raise StatisticsError(f"looks={self.looks!r}: give numbers of seeds such as (5, 10, 15, 20), or 'open'")
        if self.scale not in ("linear", "log"):
            raise StatisticsError(f"scale={self.scale!r} must be 'linear' or 'log'")
        for name in ("floor", "ceiling", "late_gain"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
                raise StatisticsError(f"{name}={value!r} must be a finite number, or None if it is unknown")
            if self.scale == "log" and name != "late_gain" and value is not None and value <= 0:
                raise StatisticsError(f"{name}={value!r} has no logarithm; on the log scale it must be above 0")

    @property
    def threshold(self) -> float:
        """The smallest difference worth having, on the analysis scale."""
        return math.log1p(self.smallest / 100) if self.scale == "log" else float(self.smallest)

    @property
    def unit(self) -> str:
        """The unit printed after a difference."""
        return " %" if self.scale == "log" else ""

    @property
    def shown_smallest(self) -> str:
        """The smallest difference worth having, with its unit."""
        return f"{self.smallest:g}{self.unit}"

    @property
    def is_still_training(self) -> bool:
        """Whether the last fifth of training gained more than half of the smallest difference worth having."""
        return self.late_gain is not None and self.late_gain > self.smallest / 2

    @property
    def late_gain_sentence(self) -> str:
        """How much was gained in the last fifth of training, and by which arm."""
        arm = f"'{self.late_gain_of}'" if self.late_gain_of else "an arm"
        return f"in the last fifth of training {arm} gained {self.late_gain or 0.0:.3g}{self.unit}"

    def to_difference(self, value: float) -> float:
        """Convert a difference on the analysis scale to the one that is shown: itself, or a percent change."""
        if self.scale == "linear" or not math.isfinite(value):
            return -100.0 if self.scale == "log" and value == -math.inf else value
        return 100 * math.expm1(value) if value < math.log(1e100) else math.inf

    def to_interval(self, interval: tuple[float, float]) -> tuple[float, float]:
        """Convert an interval of differences to the one that is shown, without differences that no scores can have."""
        low, high = map(self.to_difference, interval)
        if self.limits is None or self.scale == "log" or math.isnan(low) or math.isnan(high):
            return low, high
        widest = self.limits[1] - self.limits[0]
        return min(max(low, -widest), widest), max(min(high, widest), -widest)

    def to_metric(self, value: float) -> float:
        """Convert a score on the analysis scale to the metric's value: itself, or the exponential of a log."""
        if self.scale == "linear":
            return value
        return math.exp(value) if value < math.log(1e300) else math.inf

    def to_analysis(self, value: float) -> float:
        """Convert a value of the metric to a score on the analysis scale."""
        return math.log(value) if self.scale == "log" else value

    def level(self, num_seeds: int, num_runs: int | None = None) -> float:
        """Return the level at this number of seeds: alpha, or the limit of the look.

        num_runs: runs per arm including failed ones. If runs failed at a declared look, the limit of the previous look
        applies.
        """
        if self.looks is None or isinstance(self.looks, str):
            return self.alpha
        return limit_at(_find_look(self.looks, num_seeds, num_runs), self.looks, self.alpha)

    def final_level(self) -> float:
        """Return the level of the last look, for which plans are made."""
        if self.looks is None or isinstance(self.looks, str):
            return self.alpha
        return list(look_limits(self.looks, self.alpha).values())[-1]

    def family_p(self, p: float, num_seeds: int, num_runs: int | None = None) -> float:
        """Return the smallest alpha at which this p-value would end the comparison: p itself without declared looks."""
        if self.looks is None or isinstance(self.looks, str):
            return p
        return sequential_p(p, _find_look(self.looks, num_seeds, num_runs), self.looks)


def choose_late_gain(gains: Mapping[str, float | None]) -> tuple[float | None, str]:
    """Return the largest of the gains that are known, and the name of its arm; None and no name without any."""
    known = {arm: gain for arm, gain in gains.items() if gain is not None}
    arm = max(known, key=lambda name: known[name], default="")
    return known.get(arm), arm


def _find_look(looks: Sequence[int], num_seeds: int, num_runs: int | None) -> int:
    if num_seeds in looks or num_runs not in looks:
        return num_seeds
    return max((look for look in looks if look <= num_seeds), default=looks[0])
