"""The limits of declared looks: the textbook's constants, and the level that all looks keep together."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import StatisticsError
from attnlab.statistics import look_limits
from attnlab.statistics.looks import LOOKS, crossing_probability, limit_at, sequential_p


@pytest.mark.parametrize(("num_looks", "constant"), [(2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040)])
def test_constants_are_the_published_ones(num_looks: int, constant: float) -> None:
    """Table 2.3 of Jennison and Turnbull (2000), two-sided 5 %."""
    limits = look_limits([5 * number for number in range(1, num_looks + 1)])
    found = stats.norm.isf(list(limits.values())[-1] / 2)
    assert found == pytest.approx(constant, abs=6e-4)


def test_the_declared_looks() -> None:
    limits = look_limits()
    assert tuple(limits) == LOOKS == (5, 10, 15, 20)
    assert list(limits.values()) == pytest.approx([5.15e-5, 0.0042, 0.0194, 0.0429], rel=2e-3)


def test_one_look_has_all_of_alpha() -> None:
    assert look_limits((10,)) == pytest.approx({10: 0.05})


def test_all_looks_together_keep_alpha() -> None:
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.standard_normal((200_000, 20)), axis=1)
    crossed = np.zeros(200_000, dtype=bool)
    for n, limit in look_limits().items():
        crossed |= np.abs(paths[:, n - 1]) / math.sqrt(n) >= stats.norm.isf(limit / 2)
    assert crossed.mean() == pytest.approx(0.05, abs=0.0016)


def test_crossing_two_independent_looks_is_plain_probability() -> None:
    # With almost all information in the second look the two are independent.
    found = crossing_probability([1.96, 1.96], [1e-6, 1.0])
    assert found == pytest.approx(1 - 0.95**2, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("n", LOOKS)
def test_a_p_at_its_limit_is_worth_all_of_alpha(n: int, alpha: float) -> None:
    limit = look_limits(LOOKS, alpha)[n]
    assert sequential_p(limit, n, LOOKS) == pytest.approx(alpha, rel=1e-3)
    assert sequential_p(limit / 2, n, LOOKS) < alpha < sequential_p(2 * limit, n, LOOKS)
    assert (sequential_p(1.0, n, LOOKS), sequential_p(0.0, n, LOOKS)) == (1.0, 0.0)


@pytest.mark.parametrize("n", [4, 7, 21])
def test_a_look_that_was_not_declared_is_refused(n: int) -> None:
    with pytest.raises(StatisticsError, match=f"{n} seeds are not one of the declared looks"):
        limit_at(n, LOOKS)


@pytest.mark.parametrize("looks", [(), (5, 5), (10, 5), (1, 5), "5,10", (5.5, 10)])
def test_looks_must_grow(looks: tuple[int, ...]) -> None:
    with pytest.raises(StatisticsError, match="looks must be increasing numbers of seeds"):
        look_limits(looks)
