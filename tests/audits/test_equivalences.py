"""Kernels that disagree with the reference are found and named; sound mechanisms near a bound pass."""

import dataclasses
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import MechanismError
from attnlab.kernels import blockwise
from attnlab.kernels.visibility import Visibility
from attnlab.mechanisms import Params, Positions, Score, Weights, stage

from .faults import plant, run_check


def test_a_mask_that_sees_too_little_is_no_leak_but_no_equal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_too_few(seen: Visibility) -> Visibility:
        return dataclasses.replace(seen, first=seen.offset - 1)

    findings = plant(monkeypatch, one_too_few, "leak", "equivalences")
    assert findings["causal leak"].passed
    assert not findings["equivalences"].passed
    assert findings["equivalences"].where == "kernel blockwise"


def test_a_mask_of_pairs_that_is_ignored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind_to_pairs(seen: Visibility) -> Visibility:
        return seen if seen.is_by_key else dataclasses.replace(seen, mask=None)

    assert not plant(monkeypatch, blind_to_pairs, "equivalences")["equivalences"].passed


def test_a_fault_in_fp32_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend
    monkeypatch.setattr(blockwise, "attend", lambda call: right(call) * (1.5 if call.q.dtype == torch.float32 else 1))
    finding = run_check("dot | relu(divide=n)", "equivalences")
    assert not finding.passed
    assert finding.where == "kernel blockwise"


def test_a_wrong_factor_under_dropout_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend
    monkeypatch.setattr(blockwise, "attend", lambda call: right(call) * (1.5 if call.dropout else 1))
    assert not attnlab.audit("dot | relu(divide=n)", checks=["equivalences"]).passed


@pytest.mark.parametrize(
    "line",
    [
        "dot | argmax(divide=sqrt_n) | unit_values",
        "dot | softmax | unit_values | bypass(alpha=0.5)",
        "dot | softmax | value_residual | bypass(alpha=0.5)",
        "dot(scale=300) | softmax",
        "additive | softmax | share(qk)",
        "euclidean(squared=false) | softmax | share(qk)",
    ],
)
def test_sound_mechanisms_that_come_near_a_bound_pass(line: str) -> None:
    audit = attnlab.audit(line, checks=["equivalences", "numerics"])
    assert audit.passed, str(audit)


@pytest.mark.usefixtures("own_stages")
def test_a_stage_that_counts_forbidden_pairs_without_asking_is_refused() -> None:
    @stage("broken")
    @dataclass(frozen=True)
    class Broken(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))

    with pytest.raises(MechanismError, match="depend on masked pairs"):
        attnlab.audit("dot | broken", checks=["equivalences"])


@pytest.mark.usefixtures("own_stages")
def test_a_score_that_counts_visible_keys_is_sound() -> None:
    @stage("log_n_score")
    @dataclass(frozen=True)
    class LogN(Score):
        """q·k/√d · log(1 + n)"""

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            num_keys: Tensor = visible.sum(-1, keepdim=True)
            return torch.mul(q @ k.mT / q.shape[-1] ** 0.5, (1 + num_keys).to(q.dtype).log())

    audit = attnlab.audit("log_n_score | softmax", causal=True, checks=["equivalences"])
    assert audit.passed, str(audit)


@pytest.mark.usefixtures("own_stages")
def test_a_wrong_declaration_is_said_in_one_sentence() -> None:
    @stage("not_pointwise")
    @dataclass(frozen=True)
    class NotPointwise(Weights):
        pointwise = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores - scores.mean(-1, keepdim=True)

    @stage("other_features")
    @dataclass(frozen=True)
    class OtherFeatures(Score):
        form = "features"

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return torch.relu(q) @ k.mT

    @stage("absolute_bias")
    @dataclass(frozen=True)
    class AbsoluteBias(Score):
        form = "features"
        bias_of = "distances"

        def position_bias(self, positions: Positions, p: Params) -> Tensor:
            return positions.keys[..., None, :] / 2 + 0.0 * positions.distances

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return q @ k.mT + self.position_bias(positions, p)

    for line, sentence in {
        "dot | not_pointwise": "NotPointwise declares pointwise = True: each weight depends only on its own score",
        "other_features | relu": 'OtherFeatures declares form = "features": its score is query_features',
        "absolute_bias | relu": 'AbsoluteBias declares bias_of = "distances": its bias depends only on',
    }.items():
        finding = run_check(line, "equivalences")
        assert not finding.passed
        assert finding.sentence.startswith("A declaration is wrong by ")
        assert sentence in finding.sentence
        assert finding.where == "what a stage declares"
