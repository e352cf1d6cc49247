"""What changes while a run goes on, besides weights and the optimizer: plain numbers that a checkpoint keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..result import Evaluation
from .plain import spell, unspell

FEW = 10
"""Losses that a mean is taken over to see whether a run diverges."""


@dataclass
class State:
    """Where a run is."""

    step: int = 0
    """Updates that were made."""
    watched_step: int = 0
    """The last step whose evaluation, trace and samples were made; behind `step` where a run was stopped in them."""
    tokens: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0
    """Of the steps since the last line of the metrics."""
    first_losses: list[float] = field(default_factory=list)
    recent_losses: list[float] = field(default_factory=list)
    num_stale: int = 0
    """Evaluations since the best one."""
    last: Evaluation | None = None
    best: Evaluation | None = None

    def add(self, loss: float, tokens: int) -> None:
        """Count one update in."""
        self.step += 1
        self.tokens += tokens
        self.loss_sum += loss
        self.loss_count += 1
        if len(self.first_losses) < FEW:
            self.first_losses.append(loss)
        self.recent_losses = [*self.recent_losses, loss][-FEW:]

    def take_mean_loss(self) -> float:
        """Return the mean loss since it was last taken."""
        mean = self.loss_sum / self.loss_count
        self.loss_sum, self.loss_count = 0.0, 0
        return mean

    def would_diverge(self, loss: float, times: float | None) -> bool:
        """Tell whether the mean of the last losses, with one more, is too many times that of the first ones."""
        if times is None or self.step + 1 < 2 * FEW:
            return False
        first, last = sum(self.first_losses) / FEW, (sum(self.recent_losses[1 - FEW :]) + loss) / FEW
        return math.isfinite(first) and last > times * abs(first)

    def note(self, evaluation: Evaluation, *, higher_is_better: bool) -> bool:
        """Take in an evaluation; tell whether it is the best so far."""
        self.last = evaluation
        sign = 1 if higher_is_better else -1

        def worth(one: Evaluation) -> float:
            # NaN, such as a correlation of answers that are all alike, must not stay the best for good.
            return -math.inf if math.isnan(one.value) else sign * one.value

        if self.best is None or worth(evaluation) > worth(self.best):
            self.best, self.num_stale = evaluation, 0
            return True
        self.num_stale += 1
        return False

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        plain: dict[str, Any] = spell(asdict(self))
        return plain

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> State:
        """Read what `record` gave."""
        values = unspell(dict(record))
        for name in ("last", "best"):
            if values.get(name) is not None:
                values[name] = Evaluation(**values[name])
        return cls(**values)
