"""The progress of a run besides weights and optimizer: plain numbers that a checkpoint stores."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ..plain import decode_nonfinite, encode_nonfinite
from ..result import Evaluation

NUM_LOSSES = 10
"""Losses per mean when checking for divergence."""


@dataclass
class State:
    """The progress of a run."""

    step: int = 0
    """Updates so far."""
    watched_step: int = 0
    """The last step with complete evaluation, trace and samples; less than `step` if a run was stopped during them."""
    tokens: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0
    """Sum and number of losses since the last line of the metrics."""
    first_losses: list[float] = field(default_factory=list)
    recent_losses: list[float] = field(default_factory=list)
    num_stale: int = 0
    """Evaluations since the best one."""
    last: Evaluation | None = None
    best: Evaluation | None = None

    def add_update(self, loss: float, tokens: int) -> None:
        """Count one update."""
        self.step += 1
        self.tokens += tokens
        self.loss_sum += loss
        self.loss_count += 1
        if len(self.first_losses) < NUM_LOSSES:
            self.first_losses.append(loss)
        self.recent_losses = [*self.recent_losses, loss][-NUM_LOSSES:]

    def take_mean_loss(self) -> float:
        """Return the mean loss since the last call."""
        mean = self.loss_sum / self.loss_count
        self.loss_sum, self.loss_count = 0.0, 0
        return mean

    def would_diverge(self, loss: float, times: float | None) -> bool:
        """Tell whether the mean of the last losses and this one is more than `times` the mean of the first ones."""
        if times is None or self.step + 1 < 2 * NUM_LOSSES:
            return False
        first = sum(self.first_losses) / NUM_LOSSES
        last = (sum(self.recent_losses[1 - NUM_LOSSES :]) + loss) / NUM_LOSSES
        return math.isfinite(first) and last > times * abs(first)

    def add_evaluation(self, evaluation: Evaluation, *, higher_is_better: bool) -> bool:
        """Store an evaluation; return whether it is the best so far."""
        self.last = evaluation
        sign = 1 if higher_is_better else -1

        def rank(candidate: Evaluation) -> float:
            # NaN, such as the correlation of constant predictions, must not remain the best.
            value = candidate.value if candidate.tuning is None else candidate.tuning
            return -math.inf if math.isnan(value) else sign * value

        if self.best is None or rank(evaluation) > rank(self.best):
            self.best, self.num_stale = evaluation, 0
            return True
        self.num_stale += 1
        return False

    def record(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return dict(encode_nonfinite(asdict(self)))

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Read the output of `record`."""
        values = decode_nonfinite(dict(record))
        for name in ("last", "best"):
            if values.get(name) is not None:
                values[name] = Evaluation(**values[name])
        return cls(**values)
