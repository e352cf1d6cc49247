"""Correlations equal scipy's and values computed by hand; NaN is an error."""

import math

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import TaskError
from attnlab.tasks.metrics.correlation import pearson, spearman


def test_values_by_hand() -> None:
    # Centred: (−1.5, −0.5, 0.5, 1.5) and (−1.5, 0.5, −0.5, 1.5): 4 / 5. Ranks are the same numbers.
    assert pearson([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8, abs=1e-15)
    assert spearman([1, 2, 3, 4], [10, 30, 20, 99]) == pytest.approx(0.8, abs=1e-15)


def test_values_are_scipys_with_ties() -> None:
    draw = np.random.default_rng(0)
    gold, said = draw.integers(0, 6, 200).astype(float), draw.normal(size=200).round(1)
    assert pearson(gold, said) == stats.pearsonr(gold, said).statistic
    assert spearman(gold, said) == stats.spearmanr(gold, said).statistic


def test_a_constant_side_has_no_correlation() -> None:
    assert pearson([1.0, 2.0, 3.0], [2.5, 2.5, 2.5]) == 0.0
    assert spearman([1.0, 1.0], [2.0, 3.0]) == 0.0


@pytest.mark.parametrize(
    ("gold", "said", "message"),
    [
        ([1.0, 2.0], [1.0, math.nan], "prediction 1 is nan, the first of 1"),
        ([1.0, math.inf], [1.0, 2.0], "gold score 1 is inf"),
        ([1.0], [1.0], "two examples or more"),
        ([1.0, 2.0], [1.0], "1 predictions for 2 gold scores"),
        ([1.0, 2.0], ["a", "b"], "numbers are needed"),
        ([], [], "at least one"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(gold: list[float], said: list[float], message: str) -> None:
    for metric in (pearson, spearman):
        with pytest.raises(TaskError, match=message):
            metric(gold, said)
