"""An axis holds its values, names round numbers, and no two names beside it cover each other."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.charts.axis import LINE, MAX_TICKS, Axis, spread

NAMES = st.dictionaries(st.text(max_size=4), st.floats(0, 300), max_size=18)


@pytest.mark.parametrize("is_logarithmic", [False, True])
@pytest.mark.parametrize("values", [[], [3.0], [1e20], [1e-3, 5.0, 4e6], [71.0, 72.5]])
def test_every_value_lies_within(values: list[float], is_logarithmic: bool) -> None:
    axis = Axis.fit(values, is_logarithmic=is_logarithmic)
    assert all(0 < axis.share(value) < 1 for value in values)


@pytest.mark.parametrize("is_logarithmic", [False, True])
def test_a_share_and_its_value_are_inverses(is_logarithmic: bool) -> None:
    axis = Axis(2.0, 50.0, is_logarithmic)
    assert [axis.value(share) for share in (0, 1)] == pytest.approx([2.0, 50.0])
    assert axis.share(axis.value(0.3)) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.5, 2000, [1, 10, 100, 1000]),
        (30, 900, [50, 100, 200, 500]),
        (69.9, 73.5, [70, 71, 72, 73]),
        (1e-9, 1e12, None),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_round_and_few(low: float, high: float, ticks: list[float] | None) -> None:
    found = Axis(low, high, True).ticks()
    assert 3 <= len(found) <= MAX_TICKS
    assert ticks is None or found == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(1.4, 7.02, [2, 3, 4, 5, 6]), (-0.5, 1.1, [-0.5, 0, 0.5, 1]), (1e6, 9e6, None)]
)
def test_ticks_of_a_level_axis_are_round_and_none_is_at_the_top(
    low: float, high: float, ticks: list[float] | None
) -> None:
    axis = Axis(low, high)
    found = axis.ticks()
    assert 3 <= len(found) <= MAX_TICKS + 1
    assert axis.share(found[-1]) < 0.98
    assert ticks is None or found == pytest.approx(ticks)


@given(NAMES)
def test_names_keep_their_order_and_their_distance(places: dict[str, float]) -> None:
    found = spread(places, 300)
    rows = list(found.values())
    assert set(found) == set(places)
    assert all(after - before >= LINE - 1e-9 for before, after in pairwise(rows))
    assert all(-1e-9 <= row <= 300 + 1e-9 for row in rows)
    assert [places[name] for name in found] == sorted(places.values())


def test_names_that_do_not_meet_stay_where_they_are() -> None:
    assert spread({"low": 200.0, "high": 20.0}, 300) == {"high": 20.0, "low": 200.0}


def test_names_that_meet_part_around_their_middle() -> None:
    assert spread({"a": 100.0, "b": 100.0}, 300) == {"a": 100.0 - LINE / 2, "b": 100.0 + LINE / 2}
