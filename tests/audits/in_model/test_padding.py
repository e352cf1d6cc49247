"""Padding that changes a real token's output is found, in the model and in its encoder."""

from typing import Any

import pytest
import torch

import attnlab
from tests.audits.in_model import models

from .models import BART, make_whole_mask, transformers, with_attention


def test_padding_that_becomes_nan_and_spreads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LOWEST", -torch.inf)
    finding = attnlab.audit(with_attention("noon", make_whole_mask), checks=["padding"]).findings["padding"]
    assert not finding.passed
    assert "not a number" in finding.sentence


def test_an_encoder_that_ignores_its_padding_is_caught() -> None:
    model: Any = transformers.BartForConditionalGeneration(transformers.BartConfig(**BART, init_std=0.2))
    inner = model.model.encoder.forward
    model.model.encoder.forward = lambda *given, **more: inner(*given, **{**more, "attention_mask": None})
    finding = attnlab.audit(model, checks=["padding"]).findings["padding"]
    assert not finding.passed
    assert "the encoder's padding" in finding.sentence
