"""The i.i.d. test: only a model that sees the tokens it is to predict gets below ln V."""

import math

import pytest
import torch

import attnlab
from attnlab.audits import random_tokens


def test_a_leaking_mask_predicts_what_cannot_be_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_tokens, "STEPS", 300)
    audit = attnlab.audit("leaking-mask", causal=True, checks=["iid"], train=True)
    finding = audit.findings["i.i.d. test"]
    assert not finding.passed
    assert finding.data["loss"] < 2 < math.log(16) < finding.data["prefix_loss"]
    assert "ln 16 = 2.77" in finding.sentence
    assert "mask(after)" in finding.where


def test_the_baseline_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_tokens, "STEPS", 60)
    state = torch.get_rng_state()
    finding = attnlab.audit("baseline", causal=True, checks=["iid"], train=True).findings["i.i.d. test"]
    assert torch.equal(state, torch.get_rng_state())
    assert finding.passed
    assert finding.data["loss"] == pytest.approx(finding.data["prefix_loss"], abs=1e-4)
    assert finding.data["loss"] > math.log(16) - 0.01


def test_it_is_put_on_request_alone() -> None:
    assert "i.i.d. test" not in attnlab.audit("baseline", causal=True, checks=["weights"]).findings
    assert "i.i.d. test" not in attnlab.audit("baseline", causal=False, checks=["iid"], train=True).findings
