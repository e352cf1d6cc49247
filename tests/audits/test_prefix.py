"""Caches and recurrent states that disagree with the whole sequence are found."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from attnlab.kernels import linear
from attnlab.mechanisms import Params, Value, stage

from .faults import from_the_start, plant, run_check


def test_a_cache_whose_offset_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = plant(monkeypatch, from_the_start, "leak", "prefix")
    assert findings["causal leak"].passed
    finding = findings["prefix consistency"]
    assert not finding.passed
    failed = {part.note for part in finding.parts if not part.passed}
    assert failed == {"cached", "chunked"}
    assert "blockwise" in finding.where


def test_a_recurrent_state_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linear.step

    def forgetful(*arguments: object) -> tuple[Tensor, linear.LinearState]:
        out, state = right(*arguments)  # type: ignore[arg-type]
        return out, linear.LinearState(state.sums * 0.999, state.count)

    monkeypatch.setattr(linear, "step", forgetful)
    finding = run_check("cottention", "prefix", causal=True)
    assert [part.note for part in finding.parts if not part.passed] == ["recurrent"]


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("line", ["dot | softmax | rolled", "dot | identity(divide=n) | rolled"])
def test_a_value_stage_that_needs_more_than_the_new_tokens_is_found(line: str) -> None:
    @stage("rolled")
    @dataclass(frozen=True)
    class Rolled(Value):
        """V plus V of the token before, without `before`: a cache gives the new tokens only."""

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return t + torch.nn.functional.pad(t, (0, 0, 1, -1))

    finding = run_check(line, "prefix", causal=True)
    failed = {part.note for part in finding.parts if not part.passed}
    assert failed == {"cached", "chunked"} | ({"recurrent"} if "identity" in line else set())
    assert finding.where.startswith("the values stage 'rolled': it gives other numbers for some tokens")
