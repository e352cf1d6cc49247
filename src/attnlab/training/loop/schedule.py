"""The learning rate at every step: warmup from 0, then linear or cosine decay, or none."""

from __future__ import annotations

import math

from ..spec import Schedule


def factor_at(schedule: Schedule, step: int, num_steps: int) -> float:
    """Return the share of the highest learning rate that the update of a step (from 0) takes.

    The first update already moves: step 0 takes 1/warmup of it. The last decays to `floor` one step after the end.
    """
    warmup = schedule.warmup if schedule.warmup >= 1 else schedule.warmup * num_steps
    if step < warmup:
        return min(1.0, (step + 1) / max(1.0, warmup))
    if schedule.kind == "constant":
        return 1.0
    done = (step - warmup) / max(1.0, num_steps - warmup)
    falling = 1 - done if schedule.kind == "linear" else (1 + math.cos(math.pi * done)) / 2
    return schedule.floor + (1 - schedule.floor) * max(0.0, falling)
