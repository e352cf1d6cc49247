"""Which rows make up which batch: each row once an epoch, a function of epoch and step, sorted by length in windows."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data import Arrangement, Position
from attnlab.errors import DataError


def widths(rows: Any) -> Any:
    """Give rows lengths that repeat and have nothing to do with their order."""
    return (np.asarray(rows) * 7919) % 13


@st.composite
def arrangements(draw: st.DrawFn, window: bool = True) -> Arrangement:
    """Draw an arrangement that has at least one batch."""
    last: Literal["drop", "short"] = draw(st.sampled_from(["drop", "short"]))
    batch = draw(st.integers(1, 17))
    num_rows = draw(st.integers(batch if last == "drop" else 1, 150))
    size = draw(st.integers(0, 6)) if window else 0
    return Arrangement(num_rows, batch, draw(st.integers(0, 2**40)), last, size, widths)


def epoch_of(arrangement: Arrangement, epoch: int) -> list[list[int]]:
    """Return the batches of an epoch."""
    return [arrangement.rows(epoch, step).tolist() for step in range(arrangement.steps_per_epoch)]


@given(arrangements(), st.integers(0, 5))
def test_each_row_comes_once_an_epoch_but_for_those_dropped(arrangement: Arrangement, epoch: int) -> None:
    rows = [row for batch in epoch_of(arrangement, epoch) for row in batch]
    num_dropped = arrangement.num_rows % arrangement.batch if arrangement.last_batch == "drop" else 0
    assert len(rows) == len(set(rows)) == arrangement.num_rows - num_dropped
    assert set(rows) <= set(range(arrangement.num_rows))


@given(arrangements(), st.integers(0, 5))
def test_batches_are_full_but_for_a_short_last_one(arrangement: Arrangement, epoch: int) -> None:
    sizes = [len(batch) for batch in epoch_of(arrangement, epoch)]
    assert sizes[:-1] == [arrangement.batch] * (len(sizes) - 1)
    rest = arrangement.num_rows % arrangement.batch
    assert sizes[-1] == (rest if rest and arrangement.last_batch == "short" else arrangement.batch)


@given(arrangements(), st.data())
def test_a_batch_is_a_function_of_its_position(arrangement: Arrangement, data: st.DataObject) -> None:
    places = st.tuples(st.integers(0, 3), st.integers(0, arrangement.steps_per_epoch - 1))
    asked = data.draw(st.lists(places, min_size=1, max_size=8))
    for epoch, step in asked:
        fresh = Arrangement(
            arrangement.num_rows,
            arrangement.batch,
            arrangement.seed,
            arrangement.last_batch,
            arrangement.window,
            widths,
        )
        assert fresh.rows(epoch, step).tolist() == arrangement.rows(epoch, step).tolist()


@given(arrangements(), st.integers(0, 3))
def test_windows_only_reorder(arrangement: Arrangement, epoch: int) -> None:
    plain = Arrangement(arrangement.num_rows, arrangement.batch, arrangement.seed, arrangement.last_batch)
    mine, theirs = epoch_of(arrangement, epoch), epoch_of(plain, epoch)
    size = max(1, arrangement.window)
    for start in range(0, len(mine), size):
        one, other = (sorted(chain(*batches[start : start + size])) for batches in (mine, theirs))
        assert one == other


@given(arrangements(), st.integers(0, 3))
def test_the_batches_of_a_window_do_not_overlap_in_length(arrangement: Arrangement, epoch: int) -> None:
    if not arrangement.window:
        return
    batches = epoch_of(arrangement, epoch)
    for start in range(0, len(batches), arrangement.window):
        spans = sorted(
            (int(widths(batch).min()), int(widths(batch).max()))
            for batch in batches[start : start + arrangement.window]
        )
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_long_batches_do_not_always_come_last() -> None:
    arrangement = Arrangement(400, 4, 0, "drop", 10, widths)
    longest = {
        int(np.argmax([widths(batch).mean() for batch in epoch_of(arrangement, epoch)[:10]])) for epoch in range(9)
    }
    assert len(longest) > 3


def test_epochs_and_seeds_differ() -> None:
    orders = [epoch_of(Arrangement(100, 10, seed), epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert len({str(order) for order in orders}) == 4


@given(arrangements(), st.integers(0, 3))
def test_positions_follow_one_another(arrangement: Arrangement, epoch: int) -> None:
    position = Position(epoch, 0)
    for step in range(arrangement.steps_per_epoch):
        assert position == (epoch, step)
        position = arrangement.after(position)
    assert position == (epoch + 1, 0)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"batch": 0}, "a batch has at least 1 row"),
        ({"window": -1}, "a window at least 0 batches; got 4, -1"),
        ({"last_batch": "keep"}, "last_batch is 'drop' or 'short', not 'keep'"),
        ({"num_rows": 3}, "3 rows are fewer than one batch of 4"),
        ({"num_rows": 0}, "an order needs at least one example"),
    ],
    ids=["batch", "window", "last_batch", "few", "none"],
)
def test_what_is_no_arrangement_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Arrangement(**{"num_rows": 10, "batch": 4, **values})


@pytest.mark.parametrize(("epoch", "step"), [(0, 2), (0, -1), (-1, 0)])
def test_a_place_that_is_not_there_is_an_error(epoch: int, step: int) -> None:
    with pytest.raises(DataError, match="an epoch has steps 0 to 1"):
        Arrangement(10, 4).rows(epoch, step)
