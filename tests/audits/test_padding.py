"""Padding that changes a real token or gets a gradient is found; rounding is not."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from attnlab.kernels import blockwise
from attnlab.mechanisms import Params, Positions, Score, stage

from .faults import one_padded_key, plant, run_check


@pytest.mark.parametrize("causal", [True, False])
def test_a_padded_key_that_counts_is_found(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    finding = plant(monkeypatch, one_padded_key, "padding", causal=causal)["padding"]
    assert not finding.passed
    assert "blockwise" in finding.where


def test_a_gradient_to_the_padding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend
    monkeypatch.setattr(blockwise, "attend", lambda call: right(call) + 0 * call.v.sum() + (call.v.sum() * 1e-3) ** 2)
    finding = run_check("dot | softmax", "padding", causal=False)
    assert not finding.passed


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("line", ["gated | softmax", "gated | sigmoid"])
def test_a_gradient_of_rounding_in_the_padding_is_no_fault(line: str) -> None:
    @stage("gated")
    @dataclass(frozen=True)
    class Gated(Score):
        """A forgetting gate summed over all keys up to each: padding on the left cancels, up to rounding."""

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            faded = functional.logsigmoid(k.mean(-1) + 2).cumsum(-1)
            index = (positions.queries[..., None] >= positions.keys[..., None, :]).sum(-1) - 1
            own = faded.gather(-1, index.expand(*q.shape[:3]))
            return torch.add(q @ k.mT / q.shape[-1] ** 0.5, -(own[..., None] - faded[..., None, :]).abs())

    finding = run_check(line, "padding")
    assert finding.passed, finding
    reached = [part for part in finding.parts if part.name.startswith("gradient")]
    assert any(0 < part.figure < 1e-3 for part in reached)
    assert all(part.bound is not None and part.bound < 1e-2 for part in reached)
