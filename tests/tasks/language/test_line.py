"""Losses of lines add up, and a line without a prediction is named."""

import math

import pytest

from attnlab.errors import TaskError
from attnlab.tasks import load
from attnlab.tasks.language.line import LineLoss, group_features, make_lines, sum_losses

from ..tokenizers import SENTENCES, byte_level


def test_losses_add_up_and_give_means() -> None:
    total = LineLoss(2.0, 4, 1, 10) + LineLoss(4.0, 2, 2, 5)
    assert total == LineLoss(6.0, 6, 3, 15)
    assert total.per_token == 1.0
    assert total.perplexity == pytest.approx(math.e)
    assert LineLoss(1e6, 1).perplexity == math.inf


def test_every_line_needs_a_prediction_and_some_line_a_token() -> None:
    lines = make_lines(["one", "two"])
    assert sum_losses({"0": LineLoss(1.0, 1), "1": LineLoss(2.0, 3)}, lines) == LineLoss(3.0, 4)
    with pytest.raises(TaskError, match="text 2: no prediction for '1'"):
        sum_losses({"0": LineLoss(1.0, 1)}, lines)
    with pytest.raises(TaskError, match="no token of these lines was predicted"):
        sum_losses({"0": LineLoss(), "1": LineLoss()}, lines)
    with pytest.raises(TaskError, match="no line to score"):
        sum_losses({}, [])


def test_short_features_are_grouped_in_their_order() -> None:
    features = load("clm").features(make_lines([SENTENCES[0]] * 5), byte_level())
    each = len(features[0])
    assert list(group_features(features, 2 * each)) == [features[:2], features[2:4], features[4:]]
    assert list(group_features(features, 1)) == [[feature] for feature in features]
    assert list(group_features([], 1)) == []
