"""Plain data survives JSON; NaN and infinity are written as text and read back."""

import json
import math
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training.plain import check_plain, decode_nonfinite, encode_nonfinite


def test_values_that_are_not_finite_survive_json() -> None:
    data = {"a": [1.5, math.inf, -math.inf], "b": {"c": math.nan, "d": "text"}}
    written = encode_nonfinite(data)
    check_plain(written, "data")
    read = decode_nonfinite(json.loads(json.dumps(written, allow_nan=False)))
    assert math.isnan(read["b"].pop("c"))
    assert read == {"a": [1.5, math.inf, -math.inf], "b": {"d": "text"}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, math.nan]}, r"state.a\[1\] is nan"),
        ({1: 2}, "has the key 1, a int"),
        ({"a": {1, 2}}, "state.a is a set"),
    ],
)
def test_what_json_would_change_is_named(value: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        check_plain(value, "state")
