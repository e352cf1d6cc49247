"""What a checkpoint keeps of a run's progress, and which evaluation is the best."""

import math

import pytest

from attnlab.training import Evaluation
from attnlab.training.record.state import State


def evaluation(step: int, value: float) -> Evaluation:
    """Return an evaluation of one figure."""
    return Evaluation(step, "f1", {"f1": value})


@pytest.mark.parametrize(
    ("values", "higher", "best", "stale"),
    [
        ([1.0, 3.0, 2.0, 2.5], True, 2, 2),
        ([1.0, 3.0, 0.5], False, 3, 0),
        ([2.0, 2.0], True, 1, 1),
        ([math.nan, 0.1, 0.2], True, 3, 0),
        ([math.nan, 5.0, math.nan], False, 2, 1),
        ([math.inf, 7.0], False, 2, 0),
    ],
    ids=["higher", "lower", "a tie keeps the first", "nan first", "nan later", "infinity"],
)
def test_the_best_evaluation_is_the_first_of_the_best(values: list[float], higher: bool, best: int, stale: int) -> None:
    state = State()
    said = [
        state.add_evaluation(evaluation(step, value), higher_is_better=higher)
        for step, value in enumerate(values, start=1)
    ]
    assert state.best is not None
    assert (state.best.step, state.num_stale) == (best, stale)
    assert state.last == evaluation(len(values), values[-1]) or math.isnan(values[-1])
    assert said[best - 1]


def test_a_state_comes_back_as_it_was() -> None:
    state = State()
    for loss in (3.0, 2.0, math.inf):
        state.add_update(loss, 7)
    state.add_evaluation(evaluation(3, math.nan), higher_is_better=True)
    again = State.of(state.record())
    assert again.record() == state.record()
    assert (again.step, again.tokens, again.recent_losses) == (3, 21, [3.0, 2.0, math.inf])
    assert state.take_mean_loss() == math.inf
    assert state.loss_count == 0


def test_a_run_diverges_by_the_mean_of_ten_losses() -> None:
    state = State()
    for _ in range(18):
        assert not state.would_diverge(1e9, 3.0)
        state.add_update(1.0, 1)
    assert not state.would_diverge(1e9, 3.0)
    state.add_update(1.0, 1)
    assert state.would_diverge(22.0, 3.0)
    assert not state.would_diverge(20.0, 3.0)
    assert not state.would_diverge(1e9, None)
