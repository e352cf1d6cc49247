"""How constructions speak."""

import pytest
import torch

from attnlab.construct.words import equation, name_keys, short


@pytest.mark.parametrize(
    ("coefficients", "text"),
    [
        ([0.5, 0.0, 0.5], "0.5·k0 + 0.5·k2"),
        ([0.0, 1.0], "k1"),
        ([3.0, -2.0], "3·k0 − 2·k1"),
        ([-1.0, 2.0], "−k0 + 2·k1"),
        ([0.3, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1], "0.3·k0 + 0.1·k1 + 0.1·k2 + 0.1·k3 + 0.2·k5 + 2 more"),
    ],
)
def test_a_sum_is_written_as_one_writes_it(coefficients: list[float], text: str) -> None:
    assert equation(torch.tensor(coefficients, dtype=torch.float64)) == text


def test_keys_are_named_while_they_are_few() -> None:
    assert name_keys([2]) == "k2"
    assert name_keys([0, 1]) == "k0 and k1"
    assert name_keys([0, 1, 4]) == "k0, k1 and k4"
    assert name_keys(range(9)) == "9 keys"


def test_numbers_have_three_digits() -> None:
    assert [short(number) for number in (1.23456, -0.5, 1e-16)] == ["1.23", "−0.5", "1e−16"]


def test_coefficients_of_rounding_are_left_out() -> None:
    assert equation(torch.tensor([8.7e-17, 1.0, -1e-16], dtype=torch.float64)) == "k1"
