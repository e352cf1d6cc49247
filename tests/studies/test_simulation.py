"""Simulated scores through a real ledger: a short version of the last part of `python -m attnlab.statistics`."""

import math
from collections.abc import Mapping

import numpy as np
import pytest

from attnlab.statistics.simulation import Ask, Case, measure, start_study
from attnlab.studies.answers.fairness import AT_SHARED
from attnlab.studies.simulation import list_cases, start

NUM_REPEATS = 20


@pytest.mark.parametrize("case", list(list_cases()), ids=lambda case: case.what)
def test_false_positives_are_within_their_bound(case: Case) -> None:
    assert case.bound is not None
    slack = 3 * math.sqrt(case.bound * (1 - case.bound) / NUM_REPEATS)
    assert measure(case, NUM_REPEATS * case.cost).share <= case.bound + slack


def asks(effect: float, num: int = 5) -> Mapping[str, Ask]:
    baseline, noise = np.random.default_rng(0).normal(size=(2, 4, 7))
    variant = baseline + effect + 0.5 * noise
    return {str(cell): Ask(baseline[cell, :num], variant[cell, :num]) for cell in range(4)}


def drop_condition(verdicts: Mapping[str, str]) -> dict[str, str]:
    """Return verdicts without what only a study knows of its arms."""
    return {name: words.replace(f" {AT_SHARED}", "") for name, words in verdicts.items()}


@pytest.mark.parametrize("effect", [0.0, 3.0])
def test_a_ledger_says_what_the_statistics_say(effect: float) -> None:
    assert drop_condition(start()(asks(effect))) == start_study()(asks(effect))


def test_a_ledger_remembers_an_earlier_look() -> None:
    look, again = start(), start_study()
    for num in (5, 6, 7):
        assert drop_condition(look(asks(1.0, num))) == again(asks(1.0, num))
