"""Accuracy, F1, Matthews' correlation and collapse equal values computed by hand and by scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnlab.errors import TaskError
from attnlab.tasks.metrics.classes import accuracy, collapse, f1, matthews

GOLD = [1, 1, 1, 1, 0, 0, 1, 0, 0, 0]
SAID = [1, 1, 1, 0, 0, 1, 1, 0, 0, 0]


def test_values_by_hand() -> None:
    # 4 true positives, 4 true negatives, 1 false positive, 1 false negative.
    assert accuracy(GOLD, SAID) == 0.8
    assert f1(GOLD, SAID) == 0.8
    assert matthews(GOLD, SAID) == pytest.approx((4 * 4 - 1) / math.sqrt(5 * 5 * 5 * 5), abs=1e-15)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2))
def test_matthews_of_two_classes_is_pearsons_correlation(pairs: list[tuple[int, int]]) -> None:
    gold, said = np.array(pairs).T
    if len(set(gold)) == 1 or len(set(said)) == 1:
        assert matthews(gold, said) == 0.0
    else:
        assert matthews(gold, said) == pytest.approx(stats.pearsonr(gold, said).statistic, abs=1e-12)


def test_matthews_of_three_classes_by_hand() -> None:
    gold, said = [0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 2, 0]
    # c·s − Σ p·t = 4·6 − (2·2 + 3·2 + 1·2); s² − Σ p² = 36 − 14; s² − Σ t² = 36 − 12.
    assert matthews(gold, said) == pytest.approx(12 / math.sqrt(22 * 24), abs=1e-15)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_figures_keep_to_their_bounds(pairs: list[tuple[int, int]]) -> None:
    gold, said = np.array(pairs).T
    assert 0 <= accuracy(gold, said) <= 1
    assert 0 <= f1(gold, said) <= 1
    assert -1 - 1e-12 <= matthews(gold, said) <= 1 + 1e-12
    assert accuracy(gold, gold) == 1.0


def test_f1_of_a_class_that_is_nowhere_is_0() -> None:
    assert f1([0, 0], [0, 0]) == 0.0


def test_boolq_at_its_majority_is_seen_as_collapse() -> None:
    gold = [1] * 2033 + [0] * (3270 - 2033)
    found = collapse(gold, [1] * 3270, ("false", "true"))
    assert found.is_one_class
    assert found.majority == "true"
    assert found.majority_rate == 2033 / 3270 == accuracy(gold, [1] * 3270)
    assert found.sentence == ("COLLAPSED: every prediction is 'true'; always 'true' would reach an accuracy of 0.6217")
    assert found.record()["one_class_only"] is True


def test_two_predicted_classes_are_no_collapse() -> None:
    found = collapse(GOLD, SAID)
    assert not found.is_one_class
    assert found.predicted == {"0": 5, "1": 5}
    assert found.sentence == "2 classes are predicted; always '0' would reach an accuracy of 0.5000"


@pytest.mark.parametrize(
    ("gold", "said", "message"),
    [
        ([0, 1], [0.0, math.nan], r"prediction 1 is nan, the first of 1; .*diverged"),
        ([0, 1], [0, -1], "prediction 1 is -1"),
        ([0, 1], [0, 0.5], "prediction 1 is 0.5"),
        ([0, math.inf], [0, 1], "gold label 1 is inf"),
        ([0, 1], [0], "1 predictions for 2 gold labels"),
        ([], [], "at least one"),
        ([0, 1], ["0", "1"], "class numbers are needed"),
        ([[0, 1]], [[0, 1]], r"shape \(1, 2\)"),
    ],
)
def test_what_is_no_class_is_refused_with_its_place(gold: list[float], said: list[float], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        accuracy(gold, said)
