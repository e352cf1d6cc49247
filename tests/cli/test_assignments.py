"""`name=value` texts become settings by their path, with values as TOML has them."""

from __future__ import annotations

from typing import Any

import pytest

from attnlab.cli.assignments import read_settings, read_value, split_assignments
from attnlab.errors import RequestError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("65_000", 65000), ("-3", -3), ("1e-4", 1e-4), ("none", None), ("Null", None), ("true", True),
        ("False", "False"), ("fp32", "fp32"), ("a=b", "a=b"), ("x/y.txt", "x/y.txt"), ("[0.9, 0.95]", [0.9, 0.95]),
        ('"12"', "12"), ("", ""), ("embedded:pydoc?paragraphs=1", "embedded:pydoc?paragraphs=1"),
    ],
)  # fmt: skip
def test_a_value_is_toml_or_a_text(text: str, value: Any) -> None:
    assert read_value(text) == value


def test_settings_are_values_by_their_path() -> None:
    texts = ["optimizer.lr = 3e-4", "config.n_layer=2", "start.mechanism=dot | softmax"]
    assert read_settings(texts) == {"optimizer.lr": 3e-4, "config.n_layer": 2, "start.mechanism": "dot | softmax"}
    assert read_settings(None) == {}


@pytest.mark.parametrize(
    ("texts", "said"),
    [(["lr"], "--set takes name=value"), (["=3"], "--set takes name=value"), (["a=1", "a = 2"], "a= was given twice")],
    ids=["no sign", "no name", "twice"],
)
def test_anything_else_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        split_assignments(texts, "--set")
