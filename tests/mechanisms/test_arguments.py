"""What an argument may be: numbers of any size, words, layers, and how a line writes them."""

from dataclasses import dataclass
from types import NoneType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.mechanisms import Layers, Mechanism, Params, Weights, argument, stage
from attnlab.mechanisms.arguments import are_layers, describe, fits, read, write
from attnlab.mechanisms.scores import Additive, Dot
from attnlab.mechanisms.stage import StageError
from attnlab.mechanisms.values import Bypass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), (None, "none"), ("learned", "learned"), (0.5, "0.5"), (2.0, "2"),
        (-3.0, "-3"), (0.0, "0"), (-0.0, "0"), (1e-7, "1e-07"), (1e300, "1e+300"), (7, "7"), (0.1, "0.1"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_one_expects(value: object, text: str) -> None:
    assert write(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_back_to_the_last_bit(value: float) -> None:
    assert read(write(value), (float,)) == value


@given(st.integers(-(10**400), 10**400))
def test_every_whole_number_is_read_back(value: int) -> None:
    assert read(write(value), (int,)) == value


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "1e999", "", "1.0.0", "0x10", "true", "none", "one"])
def test_what_is_not_a_finite_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a number, not"):
        read(text, (float,))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 10**400, "1", True, None])
def test_a_number_must_be_finite_and_a_number(value: Any) -> None:
    with pytest.raises(StageError, match="bypass: alpha must be a number, not"):
        Bypass(alpha=value)


def test_a_whole_number_is_the_same_argument_as_the_float() -> None:
    assert Dot(scale=10**23) == Dot(scale=1e23)
    assert str(Dot(scale=10**23)) == str(Dot(scale=1e23)) == "dot(scale=1e+23)"
    assert isinstance(Bypass(alpha=1).alpha, float)
    assert isinstance(Additive(hidden=8).hidden, int)


@pytest.mark.parametrize("value", [8.0, "8", True, 0, -1])
def test_a_width_is_a_whole_number_of_at_least_one(value: Any) -> None:
    with pytest.raises(StageError, match="additive: hidden must be"):
        Additive(hidden=value)


@pytest.mark.parametrize("text", ["all", "0", "0-3", "0,2", "0-3,7", "7,0-3", "11-11", "0,0"])
def test_layers(text: str) -> None:
    assert are_layers(text)
    assert Bypass(layers=Layers(text)).layers == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "All",
        "all,0",
        "0-",
        "-3",
        "0--3",
        "0,",
        ",0",
        "3-1",
        "0-3,2-1",
        "0 2",
        "0, 2",
        "1.5",
        "²",
        "٣",
    ],
)
def test_what_are_not_layers(text: str) -> None:
    assert not are_layers(text)
    with pytest.raises(StageError, match="layers must be layers like all, 0-3 or 0,2"):
        Bypass(layers=Layers(text))


@pytest.mark.parametrize(
    ("value", "admitted", "expected"),
    [
        (1, (1, "n"), True), ("n", (1, "n"), True), (1.0, (1, "n"), False), (True, (1, "n"), False),
        ("1", (1, "n"), False), (True, (bool,), True), (1, (bool,), False), (1, (float,), True),
        (True, (float,), False), (True, (int,), False), (None, (float, NoneType), True),
        (None, (float,), False),
        ("learned", (float, "learned"), True), ("learn", (float, "learned"), False),
    ],
)  # fmt: skip
def test_what_fits(value: object, admitted: tuple[Any, ...], expected: bool) -> None:
    assert fits(value, admitted) is expected


@pytest.mark.parametrize(
    ("admitted", "words"),
    [
        ((float,), "a number"), ((float, "learned", NoneType), "a number or learned"),
        ((1, "n", "sqrt_n", "learned"), "1, n, sqrt_n or learned"), ((bool,), "true or false"),
        ((int, NoneType), "a whole number"), ((Layers,), "layers like all, 0-3 or 0,2"),
    ],
)  # fmt: skip
def test_what_an_argument_may_be_is_said_in_words(admitted: tuple[Any, ...], words: str) -> None:
    assert describe(admitted) == words


@pytest.mark.usefixtures("own_stages")
def test_a_strict_lower_bound_is_named_above() -> None:
    @stage("warm")
    @dataclass(frozen=True)
    class Warm(Weights):
        heat: float = argument(1.0, above=0, at_most=2)

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.sigmoid() / self.heat

    assert str(Mechanism.parse("dot | warm(heat=2)").weights) == "warm(heat=2)"
    with pytest.raises(MechanismError, match="warm: heat must be above 0, not 0"):
        Mechanism.parse("dot | warm(heat=0)")
    with pytest.raises(MechanismError, match=r"warm: heat must be at most 2, not 2\.5"):
        Mechanism.parse("dot | warm(heat=2.5)")


@pytest.mark.parametrize(("word", "hint"), [("gt", ". It takes"), ("abov", ", did you mean 'above'?")])
def test_a_keyword_that_is_no_bound_is_refused_with_those_there_are(word: str, hint: str) -> None:
    with pytest.raises(MechanismError) as caught:
        argument(1.0, **{word: 0})  # type: ignore[arg-type]
    assert f"argument(…) takes no '{word}'{hint}" in str(caught.value)
    assert "a default, the bounds at_least, above, at_most, below, and shown" in str(caught.value)
