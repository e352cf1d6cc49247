"""What a tuning may say, and how a wrong one is answered."""

from __future__ import annotations

from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training.tuning import MODES, Tuning


def test_the_defaults_are_full_tuning() -> None:
    assert Tuning() == Tuning("full", 128, 8, 16.0, 0.0, ())
    assert [Tuning(mode).mode for mode in MODES] == ["full", "head", "prompt", "prefix", "lora"]
    assert Tuning("lora", rank=1, alpha=2, dropout=0.5, targets=("query",)).targets == ("query",)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "promt"}, r"there is no mode of tuning 'promt', did you mean 'prompt'\? There are: full, head"),
        ({"mode": None}, "there is no mode of tuning None"),
        ({"length": 0}, "length is a whole number from 1 up, not 0"),
        ({"length": True}, "length is a whole number from 1 up, not True"),
        ({"rank": 2.0}, r"rank is a whole number from 1 up, not 2\.0"),
        ({"alpha": 0}, "alpha is a number above 0, not 0"),
        ({"alpha": float("nan")}, "alpha is a number above 0, not nan"),
        ({"alpha": float("inf")}, "alpha is a number above 0, not inf"),
        ({"dropout": 1.0}, r"dropout is a rate from 0 up to but not 1, not 1\.0"),
        ({"dropout": "0.1"}, "dropout is a rate"),
        ({"targets": "query"}, r"targets is a tuple of the names of linear modules, such as .*, not 'query'"),
        ({"targets": ("query", "")}, "targets is a tuple"),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_a_wrong_one_says_what_is_wrong(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        Tuning(**settings)
