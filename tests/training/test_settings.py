"""Settings are checked where they are made, and a wrong one says what it should have been."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training import Data, Optimizer, Schedule, Settings, Stage, Start, Watching
from attnlab.training.settings import differences


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (Stage, {}, "stage 'train' needs steps or epochs, one of them"),
        (Stage, {"steps": 1, "epochs": 1}, "needs steps or epochs, one of them"),
        (Stage, {"steps": 0}, "steps of stage 'train' is a whole number of at least 1, not 0"),
        (Stage, {"steps": 2.0}, r"steps of stage 'train' is a whole number of at least 1, not 2\.0"),
        (Stage, {"steps": True}, "whole number"),
        (Stage, {"steps": 10**400}, "whole number"),
        (Stage, {"epochs": 0}, "epochs of stage 'train' is a number"),
        (Stage, {"epochs": math.inf}, "epochs of stage 'train' is a number"),
        (Stage, {"name": "a", "steps": 1, "batch": 0}, "batch of stage 'a'"),
        (Stage, {"steps": 1, "micro_batch": 0}, "micro_batch"),
        (Stage, {"steps": 1, "window": -1}, "window"),
        (Stage, {"steps": 1, "lr": -1}, "lr of stage"),
        (Optimizer, {"name": "adamm"}, r"optimizer is one of adamw, adam, sgd, not 'adamm', did you mean 'adam"),
        (Optimizer, {"lr": math.nan}, "lr is a number of at least 0, not nan"),
        (Optimizer, {"betas": (0.9,)}, "betas are two numbers"),
        (Optimizer, {"betas": (0.9, 1.0)}, "beta is a number from 0 to 1"),
        (Optimizer, {"weight_decay": -0.1}, "weight_decay"),
        (Schedule, {"kind": "cosin"}, "did you mean 'cosine'"),
        (Schedule, {"floor": 2}, "floor is a number from 0 to 1, not 2"),
        (Settings, {"stages": ()}, "a run needs at least one stage"),
        (Settings, {"seed": -1}, "seed is a whole number"),
        (Settings, {"precision": "fp16"}, "precision is one of auto, fp32, bf16, not 'fp16'"),
        (Settings, {"clip": 0}, "clip is a number"),
        (Settings, {"divergence": 0.5}, "divergence is a number of at least 1"),
        (Settings, {"patience": 0}, "patience is a whole number"),
        (Watching, {"log_every": None}, "log_every is a whole number"),
        (Watching, {"evaluate_every": 0}, "evaluate_every is a whole number"),
        (Data, {"num_dev": 0}, r"data\.num_dev is a whole number of at least 1, not 0"),
        (Data, {"num_train": -3}, r"data\.num_train"),
        (Data, {"num_train": 3, "is_packed": True}, "counts examples, and packed rows are none"),
        (Start, {}, "starts from an architecture .* or from a checkpoint, one of the two"),
        (Start, {"architecture": "gpt2", "checkpoint": "x"}, "one of the two; got 'gpt2' and 'x'"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(value) if isinstance(value, dict) else "",
)
def test_a_wrong_setting_says_what_it_should_be(kind: Any, values: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        kind(**values)


@pytest.mark.parametrize(
    ("stage", "steps_per_epoch", "steps"),
    [
        (Stage(steps=7), 3, 7),
        (Stage(epochs=2), 3, 6),
        (Stage(epochs=0.5), 3, 2),
        (Stage(epochs=0.1), 10, 1),
        (Stage(epochs=0.3), 10, 3),
        (Stage(epochs=1e-6), 10, 1),
    ],
    ids=["steps", "epochs", "half", "a tenth", "three tenths", "less than a step"],
)
def test_epochs_may_be_fractions(stage: Stage, steps_per_epoch: int, steps: int) -> None:
    assert stage.num_steps(steps_per_epoch) == steps


def test_differences_are_named_by_their_place() -> None:
    one = {"a": 1, "b": {"c": [1, {"d": 2}]}, "only": None}
    other = {"a": 1, "b": {"c": [1, {"d": 3}]}, "new": 5}
    assert differences(one, one) == []
    assert differences(one, other) == ["b.c.1.d (2, there 3)", "new (None, there 5)"]
