"""Simulated arms that are made equal: what is refused finds differences that are not there."""

import numpy as np

from attnlab.statistics.simulation import measure, start_study
from attnlab.studies.fairness_simulation import list_unsound_matches, match_curves


def test_equal_steps_find_what_equal_operations_do_not() -> None:
    case = next(list_unsound_matches())
    assert measure(case, 40).share > 0.4


def test_a_true_difference_at_equal_operations_is_found() -> None:
    rng = np.random.default_rng(0)
    assert match_curves(start_study, rng, 8.0, num=5)
