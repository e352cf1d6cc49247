"""Every catalog mechanism, in every kernel that accepts it, is the reference's function: outputs and gradients."""

from __future__ import annotations

import pytest
import torch

from attnlab.mechanisms import UNIFORM
from tests.sampling import is_sampled

from .problems import LENGTHS, MANY_HEADS, SITUATIONS, SPLIT_LENGTH, assert_as_exact, problem

DTYPES = (torch.float64, torch.float32, torch.bfloat16)


CASES = [
    (name, situation, length)
    for first, name in enumerate(UNIFORM)
    for second, situation in enumerate(SITUATIONS)
    for third, length in enumerate(LENGTHS)
    if is_sampled(first, second, third)
]


@pytest.mark.parametrize(("name", "situation", "length"), CASES)
def test_every_kernel_computes_the_reference(name: str, situation: str, length: int) -> None:
    given = problem(UNIFORM[name], situation, length)
    for kernel in given.kernels:
        for dtype in DTYPES:
            if kernel == "reference" and dtype != torch.float64:
                continue
            try:
                assert_as_exact(given, kernel, dtype)
            except AssertionError as error:
                raise AssertionError(f"{kernel} in {dtype}: {error}") from error


SPLIT_CASES = [
    (name, situation)
    for first, name in enumerate(UNIFORM)
    for second, situation in enumerate(("plain", "both", "cross"))
    if is_sampled(first, second)
]


@pytest.mark.parametrize(("name", "situation"), SPLIT_CASES)
def test_every_kernel_computes_the_reference_where_it_splits(name: str, situation: str) -> None:
    given = problem(UNIFORM[name], situation, SPLIT_LENGTH, num_heads=MANY_HEADS)
    for kernel in given.kernels:
        if kernel != "reference":
            assert_as_exact(given, kernel, torch.float64)
