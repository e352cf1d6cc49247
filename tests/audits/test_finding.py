"""Findings by name, their JSON, and parts that are not a number."""

import json
import math

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.audits import FindingPart
from attnlab.audits.finding import find_worst, show_figure
from attnlab.errors import RequestError
from attnlab.kernels import blockwise
from attnlab.kernels.call import Call


def test_a_finding_is_found_by_any_part_of_its_name_that_fits_it_alone() -> None:
    findings = attnlab.audit("baseline", checks=["weights", "gradient"]).findings
    assert findings["gradient"] is findings["gradient flow"] is findings["gradient_flow"]
    assert list(findings) == ["gradient flow", "weights"]
    with pytest.raises(RequestError, match="no check is named 'leak'; there are gradient flow, weights"):
        findings["leak"]
    with pytest.raises(KeyError):
        findings["leak"]
    with pytest.raises(RequestError, match="could be any of"):
        findings["g"]
    assert findings.get("value path") is None


def test_the_record_is_json() -> None:
    record = attnlab.audit("dot | argmax", checks=["gradient", "magnitude", "leak"]).record()
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again["passed"] is False
    assert again["findings"]["gradient flow"]["verdict"] == "FAILED"
    assert again["findings"]["gradient flow"]["kind"] == "gradients"
    assert len(again["findings"]["causal leak"]["data"]["map"]) == 24


def test_a_part_that_is_not_a_number_fails_and_is_the_worst() -> None:
    parts = [FindingPart("a", 5.0, 1.0), FindingPart("b", math.nan, 1.0), FindingPart("c", 1e9)]
    assert [part.passed for part in parts] == [False, False, True]
    assert find_worst(parts).name == "b"


@pytest.mark.parametrize("check", ["padding", "equivalences", "prefix"])
def test_what_is_not_a_number_is_never_the_smaller(monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    right = blockwise.attend

    def lost(call: Call) -> Tensor:
        # Only where queries are as many as keys and more than the first trial has, so that a number comes before it.
        is_late = call.q.shape[2] > 24 and (call.visibility.mask is not None or check == "prefix")
        return right(call) * (torch.nan if is_late else 1.0)

    monkeypatch.setattr(blockwise, "attend", lost)
    finding = attnlab.audit("dot | relu(divide=n)", checks=[check]).findings[check]
    assert not finding.passed
    assert "blockwise" in finding.where


def test_a_figure_of_rounding_within_its_bound_is_shown_as_0() -> None:
    assert show_figure(FindingPart("a", 5.55e-17, 1e-13)) == "0 (to rounding)"
    assert show_figure(FindingPart("a", 0.0, 0.0)) == "0"
    assert show_figure(FindingPart("a", 5.55e-17, 0.0)) == "5.55e−17"  # exactly 0 was needed
    assert show_figure(FindingPart("a", 5.55e-17)) == "5.55e−17"
    assert show_figure(FindingPart("a", 1e-14, 1e-13)) == "1e−14"
