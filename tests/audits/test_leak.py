"""Leaks that were planted in kernels and stages are found, and the kernel that has one is named."""

import dataclasses

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.kernels import blockwise, linear, rowwise
from attnlab.kernels.call import Call
from attnlab.kernels.visibility import Visibility
from attnlab.mechanisms import Dims, Features, Parameter, Params, Score, Value, stage

from .faults import one_too_many, plant, run_check
from .in_model.models import gpt2


def test_a_mask_that_is_off_by_one_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = plant(monkeypatch, one_too_many, "leak", "prefix")
    leak = findings["causal leak"]
    assert not leak.passed
    assert "blockwise" in leak.where
    assert "reference" not in leak.where
    assert not findings["prefix consistency"].passed
    forbidden = [(i, j) for i, row in enumerate(leak.data["map"]) for j, size in enumerate(row) if j > i and size > 0]
    assert forbidden
    assert all(j == i + 1 for i, j in forbidden)


def test_causality_that_is_lost_under_a_mask_of_pairs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(seen: Visibility) -> Visibility:
        return seen if seen.is_by_key else dataclasses.replace(seen, causal=False)

    finding = plant(monkeypatch, careless, "leak")["leak"]
    assert not finding.passed
    assert all("mask of pairs" in part.name for part in finding.parts if not part.passed)


def test_a_leak_only_under_dropout_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend

    def careless(call: Call) -> Tensor:
        if not call.dropout:
            return right(call)
        return right(dataclasses.replace(call, visibility=dataclasses.replace(call.visibility, causal=False)))

    monkeypatch.setattr(blockwise, "attend", careless)
    finding = run_check("dot | relu(divide=n)", "leak", causal=True)
    assert not finding.passed
    assert all("dropout" in part.name and part.kernel == "blockwise" for part in finding.parts if not part.passed)


def test_a_leak_only_in_bf16_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rowwise.attend

    def careless(call: Call) -> Tensor:
        if call.q.dtype != torch.bfloat16:
            return right(call)
        return right(dataclasses.replace(call, visibility=one_too_many(call.visibility)))

    monkeypatch.setattr(rowwise, "attend", careless)
    finding = run_check("dot | softmax", "leak", causal=True)
    assert not finding.passed
    assert all("bfloat16" in part.name for part in finding.parts if not part.passed)


def test_a_leak_beyond_the_first_span_of_a_running_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linear.attend

    def short_sighted(call: Call) -> Tensor:
        out = right(call)
        return out if call.q.shape[2] <= 2048 else out + call.v[:, :, -1:]

    monkeypatch.setattr(linear, "attend", short_sighted)
    finding = run_check("cottention", "leak", causal=True)
    assert not finding.passed
    assert "linear" in finding.where


@pytest.mark.usefixtures("own_stages")
def test_a_stage_that_looks_ahead_on_the_value_path_is_found() -> None:
    @stage("smooth")
    @dataclasses.dataclass(frozen=True)
    class Smooth(Value):
        """The mean of a value and the next one."""

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return 0.5 * (t + t.roll(-1, 2))

    finding = run_check("dot | softmax | smooth", "leak", causal=True)
    assert not finding.passed
    assert "the value of token" in finding.sentence


@pytest.mark.usefixtures("own_stages")
def test_a_stage_that_normalises_over_the_sequence_is_found() -> None:
    @stage("centred")
    @dataclasses.dataclass(frozen=True)
    class Centred(Score):
        """Scores of keys less their mean over all keys."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return q @ (k - k.mean(2, keepdim=True)).mT

    findings = attnlab.audit("centred | relu", causal=True, checks=["leak", "prefix", "padding"]).findings
    assert [findings[name].passed for name in ("leak", "prefix", "padding")] == [False, False, False]
    assert "the key of token" in findings["leak"].sentence


@pytest.mark.usefixtures("own_stages")
def test_a_gate_that_opens_a_leak_only_once_it_is_trained_is_found() -> None:
    @stage("late")
    @dataclasses.dataclass(frozen=True)
    class Late(Value):
        """A learned share of the next value, which starts at 0."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"share": Parameter((dims.num_heads,), 0.0, 0.0)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return t + p["share"][:, None, None] * t.roll(-1, 2)

    assert not run_check("dot | softmax | late", "leak", causal=True).passed


def register_minus_mean(share: float) -> str:
    """Register keys less the mean of all keys, and less a share of the next key; return a line with them."""

    @stage("minus_mean")
    @dataclasses.dataclass(frozen=True)
    class MinusMean(Features):
        sides = ("k",)

        def __call__(self, t: Tensor, side: str, p: Params) -> Tensor:
            return t - t.mean(-2, keepdim=True) - share * t.roll(-1, -2)

    return "dot | softmax | minus_mean"


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize(("share", "is_rounding"), [(0.0, True), (1e-6, False), (0.1, False)])
def test_later_tokens_that_cancel_up_to_rounding_are_told_from_a_leak(share: float, is_rounding: bool) -> None:
    line = register_minus_mean(share)
    for finding in (
        run_check(line, "leak", causal=True),
        attnlab.audit(attnlab.install(gpt2(), line), checks=["leak"]).findings["leak"],
    ):
        assert not finding.passed
        assert ("which cancel up to rounding" in finding.sentence) == is_rounding, finding.sentence
        assert ("sees the future" in finding.sentence) != is_rounding


def test_results_that_overflow_are_not_called_a_leak() -> None:
    finding = run_check("dot | identity | delta", "leak", causal=True)
    assert not finding.passed
    assert "cannot be said whether it sees the future" in finding.sentence
    assert "overflow" in finding.where
