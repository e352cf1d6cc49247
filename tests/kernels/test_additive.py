"""The additive kernel: features of any size, and what it leaves to other kernels."""

import warnings

import pytest
import torch

from attnlab import explain
from attnlab.mechanisms.scores import Additive

from .problems import Problem, assert_as_exact, problem


@pytest.mark.parametrize("size", [1.0, 3.0, 10.0, 100.0])
def test_additive_features_of_any_size_are_right_and_beyond_the_range_it_says_so(size: float) -> None:
    given = problem("additive", "both", 33)
    tensors = {key: tensor * size if key in "qk" else tensor for key, tensor in given.tensors.items()}
    case = Problem(given.mechanism, tensors, True, given.mask)
    learned = {x: tensors[f"additive_{x}"] for x in ("query", "key", "out")}
    a, b, _ = Additive().features(tensors["q"], tensors["k"], learned)
    largest = float(a.abs().max() + b.abs().max())
    for dtype in (torch.float32, torch.float64):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert_as_exact(case, "additive", dtype)
        is_beyond = largest > (40 if dtype == torch.float32 else 340)
        assert any("exponential" in str(w.message) for w in said) == is_beyond


def test_other_scores_and_devices_are_refused() -> None:
    assert "only additive scores" in explain("manhattan | softmax", length=8).refused["additive"]
    assert "for the CPU, not for cuda" in explain("additive | softmax", length=8, device="cuda").refused["additive"]
