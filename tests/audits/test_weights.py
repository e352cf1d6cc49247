"""The statistics of weights."""

import pytest

from .faults import run_check


def test_weights_are_described() -> None:
    def numbers(line: str) -> dict[str, float]:
        return dict(run_check(line, "weights", causal=True).data)

    softmax, linear, sparse, zero = map(numbers, ("baseline", "linear", "sparsemax", "zero-mask"))
    assert softmax["smallest sum"] == pytest.approx(1) == softmax["largest sum"]
    assert (softmax["negative"], softmax["exactly zero"]) == (0, 0)
    assert linear["negative"] == pytest.approx(0.5, abs=0.05)
    assert sparse["exactly zero"] > 0.5
    hidden = "share on tokens that may not be seen"
    assert softmax[hidden] == pytest.approx(0, abs=1e-12)
    assert zero[hidden] > 0.3
