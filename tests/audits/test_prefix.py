"""Caches and recurrent states that disagree with the whole sequence are found."""

import pytest
from torch import Tensor

from attnlab.kernels import linear

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
