"""The learning rate at every step: linear warmup, then linear or cosine decay, or none."""

import math

from ..spec import Schedule


def compute_lr_factor(schedule: Schedule, step: int, num_steps: int) -> float:
    """Return the share of the peak learning rate at a step (from 0).

    Step 0 uses 1/warmup of the peak, and `floor` is reached one step after the last.
    """
    warmup = schedule.warmup if schedule.warmup >= 1 else schedule.warmup * num_steps
    if step < warmup:
        return min(1.0, (step + 1) / max(1.0, warmup))
    if schedule.kind == "constant":
        return 1.0
    progress = (step - warmup) / max(1.0, num_steps - warmup)
    decay = 1 - progress if schedule.kind == "linear" else (1 + math.cos(math.pi * progress)) / 2
    return schedule.floor + (1 - schedule.floor) * max(0.0, decay)
