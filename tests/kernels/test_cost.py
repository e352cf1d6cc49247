"""Costs by counting: how they grow, and how large numbers are written."""

import dataclasses

import pytest
import torch

from attnlab.kernels.call import Request
from attnlab.kernels.cost import Cost, estimate, show_with_prefix
from attnlab.mechanisms import Mechanism


def request(line: str, length: int, causal: bool = False) -> Request:
    return Request(Mechanism.parse(line), length, length, causal=causal)


@pytest.mark.parametrize(
    ("line", "kernel", "power"),
    [("cosine | identity", "linear", 1), ("dot | relu", "blockwise", 2), ("dot | relu", "reference", 2)],
)
def test_operations_grow_as_stated(line: str, kernel: str, power: int) -> None:
    short, long = (estimate(request(line, length), kernel) for length in (1024, 2048))
    assert long.operations / short.operations == pytest.approx(2**power)
    assert short.exponent == long.exponent == power


def test_a_causal_mask_halves_what_tiles_compute_and_not_what_the_reference_does() -> None:
    whole, causal = (request("dot | relu", 8192, is_causal) for is_causal in (False, True))
    ratio = estimate(causal, "blockwise").operations / estimate(whole, "blockwise").operations
    assert ratio == pytest.approx(0.5, abs=0.02)
    assert estimate(causal, "reference") == estimate(whole, "reference")


def test_only_the_reference_holds_a_vector_per_pair() -> None:
    dot, distance = request("dot | relu", 4096), request("manhattan | relu", 4096)
    assert estimate(distance, "reference").work_bytes == 64 * estimate(dot, "reference").work_bytes
    assert estimate(distance, "distance").work_bytes < estimate(dot, "reference").work_bytes


def test_work_space_has_the_precision_of_the_sums() -> None:
    single = request("dot | relu", 256)
    double = dataclasses.replace(single, dtype=torch.float64)
    assert estimate(double, "blockwise").work_bytes == 2 * estimate(single, "blockwise").work_bytes


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 "), (999, "999 "), (1000, "1 k"), (2.5e6, "2.5 M"), (3e9, "3 G"), (4.2e15, "4.2e+03 T")]
)
def test_large_numbers_have_a_prefix(number: float, text: str) -> None:
    assert show_with_prefix(number) == text


def test_a_cost_is_one_line() -> None:
    assert str(Cost(2e9, 3000, 1)) == "2 G operations forward, 3 kB of work space, time grows as n"
    assert str(Cost(2e9, 3000, 2)).endswith("n^2")
