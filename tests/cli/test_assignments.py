"""`name=value` texts become fields of settings, by the types that these have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from attnlab.cli.assignments import filled, parted, plain
from attnlab.errors import RequestError


@dataclass(frozen=True)
class Example:
    """Fields of every type that settings have."""

    count: int = 1
    rate: float = 0.5
    limit: int | None = None
    share: float | None = None
    kind: Literal["one", "other"] = "one"
    is_on: bool = False
    name: str = ""
    path: str | None = None
    pair: tuple[float, float] = (0.0, 1.0)
    words: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("count", "12", 12), ("count", "65_000", 65000), ("count", "-3", -3), ("rate", "1e-4", 1e-4),
        ("rate", "2", 2.0), ("limit", "none", None), ("limit", "None", None), ("limit", "7", 7),
        ("share", "null", None), ("share", "0.1", 0.1),
        ("kind", "other", "other"), ("is_on", "true", True), ("is_on", "No", False), ("name", "none", "none"),
        ("name", "a=b", "a=b"), ("path", "none", None), ("path", "x/y", "x/y"), ("pair", "0.9,0.95", (0.9, 0.95)),
        ("words", "query, value", ("query", "value")), ("words", "", ()),
    ],
    ids=lambda value: str(value),
)  # fmt: skip
def test_texts_are_read_as_their_field_says(name: str, text: str, value: Any) -> None:
    found = filled(Example, {name: text}, "example")[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("count", "1.5", r"example\.count is a whole number, not '1\.5'"),
        ("count", "none", "is a whole number, not 'none'"),
        ("limit", "few", "is a whole number or none, not 'few'"),
        ("rate", "fast", "is a number, not 'fast'"),
        ("kind", "none", "is one or other, not 'none'"),
        ("is_on", "1", "is true or false, not '1'"),
        ("pair", "0.9,x", "is a number, not 'x'"),
        ("coutn", "1", r"example has no setting 'coutn', did you mean 'count'\? It has count, rate"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_does_not_fit_is_said(name: str, text: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        filled(Example, {name: text}, "example")


def test_texts_are_parted_at_their_first_sign() -> None:
    assert parted(["a=1", " b = c=d "], "--set") == {"a": "1", "b": "c=d"}
    for texts, said in ((["a"], "takes name=value"), (["=3"], "takes name=value"), (["a=1", "a=2"], "a= came twice")):
        with pytest.raises(RequestError, match=said):
            parted(texts, "--set")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("no", False),
        ("none", None),
        ("gelu", "gelu"),
        ("", ""),
    ],
    ids=["whole", "number", "power", "truth", "untruth", "none", "word", "nothing"],
)
def test_values_of_unknown_type_are_what_they_look_like(text: str, value: Any) -> None:
    assert plain(text) == value
    assert type(plain(text)) is type(value)
