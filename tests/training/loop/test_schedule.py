"""The learning rate at every step."""

import math
from pathlib import Path
from typing import Any

import pytest

from attnlab.training import Optimizer, Schedule, Segment
from attnlab.training.loop.schedule import compute_lr_factor
from tests.training.runs import lines_of, small, trained


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        (Schedule(kind="linear", warmup=0), [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]),
        (Schedule(kind="linear", warmup=2), [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        (Schedule(kind="linear", warmup=0.2), [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        (Schedule(kind="linear", warmup=5, floor=0.5), [0.2, 0.4, 0.6, 0.8, 1, 1, 0.9, 0.8, 0.7, 0.6]),
        (Schedule(kind="constant", warmup=4), [0.25, 0.5, 0.75, *[1] * 7]),
        (Schedule(kind="cosine", warmup=0), [(1 + math.cos(math.pi * step / 10)) / 2 for step in range(10)]),
        (
            Schedule(kind="cosine", warmup=0, floor=0.1),
            [0.1 + 0.45 * (1 + math.cos(math.pi * step / 10)) for step in range(10)],
        ),
        (Schedule(kind="linear", warmup=20), [(step + 1) / 20 for step in range(10)]),
    ],
    ids=["linear", "steps", "share", "floor", "constant", "cosine", "cosine floor", "warmup past the end"],
)
def test_factors_are_those_one_works_out_by_hand(schedule: Schedule, factors: list[float]) -> None:
    assert [compute_lr_factor(schedule, step, 10) for step in range(10)] == pytest.approx(factors)


@pytest.mark.parametrize("kind", ["linear", "cosine", "constant"])
@pytest.mark.parametrize("num_steps", [1, 2, 7])
def test_short_runs_have_rates_above_zero(kind: Any, num_steps: int) -> None:
    for warmup in (0, 0.06, 0.5, 1, 3):
        factors = [compute_lr_factor(Schedule(kind=kind, warmup=warmup), step, num_steps) for step in range(num_steps)]
        assert all(0 < factor <= 1 for factor in factors)


def test_stages_may_have_rates_of_their_own(tmp_path: Path) -> None:
    segments = (
        Segment(name="a", steps=2, batch=4),
        Segment(name="b", steps=2, batch=4, lr=0.5),
        Segment(name="c", steps=1, batch=4, lr=0.0),
    )
    trained(
        small(segments=segments, optimizer=Optimizer(lr=0.1), schedule=Schedule(kind="constant", warmup=0)), tmp_path
    )
    assert [line["lr"] for line in lines_of(tmp_path, "train")] == [0.1, 0.1, 0.5, 0.5, 0.0]
