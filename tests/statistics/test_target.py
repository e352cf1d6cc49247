"""When a curve reaches a target, what is said of an arm's last figures, and how many steps replace others."""

import math
from functools import partial

import pytest

from attnlab.statistics.target import (
    Curve,
    compare_with_target,
    exchange_steps,
    find_crossing,
    median_of_runs,
    name_outcome,
    summarize_exchange,
)  # fmt: skip

FALLING: Curve = [(10, 5.0), (20, 4.0), (30, 3.0)]


@pytest.mark.parametrize(
    ("target", "step"), [(4.0, 20), (3.5, 25), (3.0, 30), (2.9, None), (6.0, 10), (4.9, 11)]
)  # fmt: skip
def test_a_crossing_is_interpolated_between_evaluations(target: float, step: float | None) -> None:
    found = find_crossing(FALLING, target, higher_is_better=False)
    assert found == (None if step is None else pytest.approx(step))
    rising = [(at, -figure) for at, figure in FALLING]
    assert find_crossing(rising, -target, higher_is_better=True) == found


def test_an_evaluation_without_a_figure_is_not_interpolated_over() -> None:
    assert find_crossing([(10, 5.0), (20, math.nan), (30, 3.0)], 4.0, higher_is_better=False) == 30
    assert find_crossing([], 4.0, higher_is_better=False) is None


def judge(*values: float | None, target: float = 3.2) -> str:
    return name_outcome(compare_with_target(dict(enumerate(values)), target, higher_is_better=False), target)


def test_words_follow_the_interval_of_the_last_figures() -> None:
    low, high = [3.0, 3.1, 3.05, 3.0, 3.1], [3.3, 3.4, 3.35, 3.4, 3.3]
    assert judge(*low) == "REACHES 3.2"
    assert judge(*high) == "DOES NOT REACH 3.2"
    assert judge(3.0, 3.4, 3.2, 3.1, 3.3) == "TARGET INCONCLUSIVE"
    assert judge(*low, None) == "REACHES 3.2 AMONG RUNS THAT FINISHED"
    assert judge(*low[:4]) == "TOO FEW SEEDS (n < 5)"
    assert judge(*[3.0] * 5) == "DEGENERATE"


def test_a_perplexity_is_tested_on_its_logarithm() -> None:
    values = {seed: 30.0 * math.exp(0.01 * seed) for seed in range(1, 6)}
    found = compare_with_target(values, 30.0, higher_is_better=False, scale="log")
    assert found.difference == pytest.approx(100 * math.expm1(0.03))


def test_steps_are_exchanged_in_both_directions() -> None:
    fast: Curve = [(10, 4.0), (20, 3.0), (30, 2.5)]
    change = partial(exchange_steps, higher_is_better=False)
    assert change(FALLING, fast) == pytest.approx(math.log(20 / 30))
    assert change(fast, FALLING) == pytest.approx(-math.log(20 / 30))
    assert change(FALLING, FALLING) == 0
    assert change(FALLING, []) is None


def test_the_exchange_has_an_interval_over_seeds() -> None:
    mean, (low, high) = summarize_exchange([math.log(0.5), math.log(0.6), math.log(0.4)])
    assert low < mean < high
    assert mean == pytest.approx(100 * ((0.5 * 0.6 * 0.4) ** (1 / 3) - 1))
    assert all(map(math.isnan, summarize_exchange([0.1])[1]))


def test_runs_that_never_get_there_are_later_than_all_others() -> None:
    assert median_of_runs([1.0, None, 3.0]) == 3.0
    assert median_of_runs([1.0, 2.0, None, None]) is None
    assert median_of_runs([]) is None


@pytest.mark.parametrize(
    ("score", "target", "words"),
    [(1.0, 0.8, "REACHES 0.8"), (1.0, 1.0, "REACHES 1"), (0.7, 0.8, "DEGENERATE"), (0.9, 0.8, "DEGENERATE")],
)
def test_a_perfect_score_of_every_seed_reaches_a_target(score: float, target: float, words: str) -> None:
    compared = compare_with_target(dict.fromkeys(range(5), score), target, higher_is_better=True)
    assert name_outcome(compared, target) == words


def test_a_perfect_score_of_four_seeds_is_too_few() -> None:
    compared = compare_with_target(dict.fromkeys(range(4), 1.0), 0.8, higher_is_better=True)
    assert name_outcome(compared, 0.8).startswith("TOO FEW SEEDS")
