"""Outputs that are not finite are counted."""

from typing import Any

import pytest
import torch

import attnlab
from tests.audits.in_model import models

from .models import gpt2, make_whole_mask, with_attention


def test_numbers_that_are_not_finite_are_counted() -> None:
    model: Any = gpt2()
    with torch.no_grad():
        model.transformer.ln_f.weight[0] = torch.nan
    assert not attnlab.audit(model, checks=["numerics"]).passed


def test_a_sequence_of_padding_alone_is_reported_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LOWEST", -torch.inf)
    finding = attnlab.audit(with_attention("midnight", make_whole_mask), checks=["numerics"]).findings["numerics"]
    assert finding.passed, finding
    assert finding.parts[2].figure > 0
    assert finding.sentence.endswith("The outputs of that sequence itself are not: exclude it from means.")
