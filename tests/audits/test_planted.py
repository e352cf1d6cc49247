"""Kernels that are broken on purpose: each fault is found, and the kernel that has it is named."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar, Literal

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.audits import Audit, FindingPart, Subject
from attnlab.kernels import blockwise, linear, reference, rowwise
from attnlab.kernels.call import Call
from attnlab.kernels.visibility import Visibility
from attnlab.mechanisms import Mechanism, Params, Score, Value, Weights, masked_softmax, stage

Attend = Callable[[Call], Tensor]


def seen_otherwise(change: Callable[[Visibility], Visibility]) -> Attend:
    """Return a kernel that computes the reference with another idea of what may be seen."""

    def attend(call: Call) -> Tensor:
        return reference.attend(dataclasses.replace(call, visibility=change(call.visibility)))

    return attend


def one_too_many(seen: Visibility) -> Visibility:
    """See one token of the future."""
    return dataclasses.replace(seen, first=seen.offset + 1)


def one_padded_key(seen: Visibility) -> Visibility:
    """Count the first key of the padding."""
    if seen.mask is None or seen.mask.shape[2] != 1:
        return seen
    hidden = ~seen.mask
    first = hidden & (hidden.cumsum(-1) == 1)
    return dataclasses.replace(seen, mask=seen.mask | first)


def from_the_start(seen: Visibility) -> Visibility:
    """Forget where queries stand against a longer cache."""
    return dataclasses.replace(seen, first=0)


def planted(monkeypatch: pytest.MonkeyPatch, change: Callable[[Visibility], Visibility], causal: bool = True) -> Audit:
    """Break the blockwise kernel and audit what it computes."""
    monkeypatch.setattr(blockwise, "attend", seen_otherwise(change))
    names = ["leak", "prefix", "padding", "numerics", "equivalences"]
    return attnlab.audit("dot | relu(divide=n)", causal=causal, checks=names)


def test_a_mask_that_is_off_by_one_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = planted(monkeypatch, one_too_many)
    leak = audit.findings["causal leak"]
    assert not leak.passed
    assert "blockwise" in leak.where
    assert "reference" not in leak.where
    assert not audit.findings["prefix consistency"].passed
    forbidden = [(i, j) for i, row in enumerate(leak.data["map"]) for j, size in enumerate(row) if j > i and size > 0]
    assert forbidden
    assert all(j == i + 1 for i, j in forbidden)


def test_a_mask_that_sees_too_little_is_no_leak_but_no_equal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_too_few(seen: Visibility) -> Visibility:
        return dataclasses.replace(seen, first=seen.offset - 1)

    audit = planted(monkeypatch, one_too_few)
    assert audit.findings["causal leak"].passed
    assert not audit.findings["equivalences"].passed
    assert audit.findings["equivalences"].where == "kernel blockwise"


@pytest.mark.parametrize("causal", [True, False])
def test_a_padded_key_that_counts_is_found(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    finding = planted(monkeypatch, one_padded_key, causal).findings["padding"]
    assert not finding.passed
    assert "blockwise" in finding.where


def test_a_cache_whose_offset_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = planted(monkeypatch, from_the_start)
    assert audit.findings["causal leak"].passed
    finding = audit.findings["prefix consistency"]
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
    finding = attnlab.audit("cottention", causal=True, checks=["prefix"]).findings["prefix"]
    assert [part.note for part in finding.parts if not part.passed] == ["recurrent"]


def test_a_leak_only_under_dropout_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend

    def careless(call: Call) -> Tensor:
        if not call.dropout:
            return right(call)
        return right(dataclasses.replace(call, visibility=dataclasses.replace(call.visibility, causal=False)))

    monkeypatch.setattr(blockwise, "attend", careless)
    finding = attnlab.audit("dot | relu(divide=n)", causal=True, checks=["leak"]).findings["leak"]
    assert not finding.passed
    assert all("dropout" in part.name and part.kernel == "blockwise" for part in finding.parts if not part.passed)


def test_a_leak_only_in_bf16_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rowwise.attend

    def careless(call: Call) -> Tensor:
        if call.q.dtype != torch.bfloat16:
            return right(call)
        return right(dataclasses.replace(call, visibility=one_too_many(call.visibility)))

    monkeypatch.setattr(rowwise, "attend", careless)
    finding = attnlab.audit("dot | softmax", causal=True, checks=["leak"]).findings["leak"]
    assert not finding.passed
    assert all("bfloat16" in part.name for part in finding.parts if not part.passed)


def test_a_gradient_to_the_padding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend
    monkeypatch.setattr(blockwise, "attend", lambda call: right(call) + 0 * call.v.sum() + (call.v.sum() * 1e-3) ** 2)
    finding = attnlab.audit("dot | softmax", causal=False, checks=["padding"]).findings["padding"]
    assert not finding.passed


def test_a_row_that_sees_nothing_and_still_answers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rowwise.attend
    monkeypatch.setattr(rowwise, "attend", lambda call: right(call) + 1)
    finding = attnlab.audit("dot | softmax", causal=False, checks=["numerics"]).findings["numerics"]
    assert not finding.passed
    assert "rowwise" in finding.where


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rowwise.attend
    monkeypatch.setattr(rowwise, "attend", lambda call: 2 * right(call) - right(call).detach())
    finding = attnlab.audit("dot | softmax", causal=False, checks=["numerics"]).findings["numerics"]
    failed = [part.name for part in finding.parts if not part.passed]
    assert failed
    assert all(name.startswith("gradcheck") for name in failed)


@pytest.mark.usefixtures("own_stages")
def test_a_stage_that_looks_ahead_on_the_value_path_is_found() -> None:
    @stage("smooth")
    @dataclasses.dataclass(frozen=True)
    class Smooth(Value):
        """The mean of a value and the next one."""

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return 0.5 * (t + t.roll(-1, 2))

    finding = attnlab.audit("dot | softmax | smooth", causal=True, checks=["leak"]).findings["leak"]
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
    from attnlab.mechanisms.stage import Dims, Parameter

    @stage("late")
    @dataclasses.dataclass(frozen=True)
    class Late(Value):
        """A learned share of the next value, which starts at 0."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"share": Parameter((dims.num_heads,), 0.0, 0.0)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return t + p["share"][:, None, None] * t.roll(-1, 2)

    finding = attnlab.audit("dot | softmax | late", causal=True, checks=["leak"]).findings["leak"]
    assert not finding.passed
    assert all("parameters moved" in part.name for part in finding.parts if not part.passed)


@pytest.mark.usefixtures("own_stages")
def test_a_parameter_that_is_never_used_is_named() -> None:
    from attnlab.mechanisms.stage import Dims, Parameter

    @stage("idle")
    @dataclasses.dataclass(frozen=True)
    class Idle(Weights):
        """Softmax with a temperature that was forgotten."""

        pointwise: ClassVar[bool] = False
        kind: Literal["a", "b"] = "a"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"temperature": Parameter((dims.num_heads,), 1.0, 1.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return masked_softmax(scores, visible)

    finding = attnlab.audit("dot | idle", checks=["gradient"]).findings["gradient"]
    assert not finding.passed
    assert "idle_temperature" in finding.sentence
    assert "idle" in finding.where


@pytest.mark.usefixtures("own_stages")
def test_scores_that_do_not_depend_on_the_query_are_named() -> None:
    @stage("fixed")
    @dataclasses.dataclass(frozen=True)
    class Fixed(Score):
        """The size of a key, whoever asks."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (k * k).sum(-1)[:, :, None, :].expand(-1, -1, q.shape[2], -1)

    finding = attnlab.audit("fixed | softmax", checks=["gradient"]).findings["gradient"]
    assert "queries" in finding.sentence
    assert "keys" not in finding.sentence
    assert finding.where == "the stage 'fixed'"


@pytest.mark.usefixtures("own_stages")
def test_weights_that_overflow_are_found() -> None:
    @stage("power")
    @dataclasses.dataclass(frozen=True)
    class Power(Weights):
        """exp of scores, divided by their sum, without care for large ones."""

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            e = torch.exp(scores) * visible
            return e / e.sum(-1, keepdim=True)

    finding = attnlab.audit("dot | power", causal=False, checks=["numerics"]).findings["numerics"]
    assert not finding.passed
    assert "10⁵" in finding.sentence


def test_a_fault_in_fp32_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend
    monkeypatch.setattr(blockwise, "attend", lambda call: right(call) * (1.5 if call.q.dtype == torch.float32 else 1))
    finding = attnlab.audit("dot | relu(divide=n)", checks=["equivalences"]).findings["equivalences"]
    assert not finding.passed
    assert finding.where == "kernel blockwise"


def test_a_mask_of_pairs_that_is_ignored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind_to_pairs(seen: Visibility) -> Visibility:
        return seen if seen.is_by_key else dataclasses.replace(seen, mask=None)

    audit = planted(monkeypatch, blind_to_pairs)
    assert not audit.findings["equivalences"].passed


def test_causality_that_is_lost_under_a_mask_of_pairs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(seen: Visibility) -> Visibility:
        return seen if seen.is_by_key else dataclasses.replace(seen, causal=False)

    finding = planted(monkeypatch, careless).findings["causal leak"]
    assert not finding.passed
    assert all("mask of pairs" in part.name for part in finding.parts if not part.passed)


def test_a_wrong_factor_under_dropout_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = blockwise.attend
    monkeypatch.setattr(blockwise, "attend", lambda call: right(call) * (1.5 if call.dropout else 1))
    assert not attnlab.audit("dot | relu(divide=n)", checks=["equivalences"]).passed


def test_a_leak_beyond_the_first_span_of_a_running_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linear.attend

    def short_sighted(call: Call) -> Tensor:
        out = right(call)
        return out if call.q.shape[2] <= 2048 else out + call.v[:, :, -1:]

    monkeypatch.setattr(linear, "attend", short_sighted)
    finding = attnlab.audit("cottention", causal=True, checks=["leak"]).findings["leak"]
    assert not finding.passed
    assert "linear" in finding.where


@pytest.mark.usefixtures("own_stages")
def test_a_wrong_gradient_of_a_parameter_is_found() -> None:
    from attnlab.mechanisms.stage import Dims, Parameter

    @stage("backwards")
    @dataclasses.dataclass(frozen=True)
    class Backwards(Value):
        """A factor whose gradient has the wrong sign."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"factor": Parameter((dims.num_heads,), 1.0, 1.0)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            factor = p["factor"][:, None, None]
            return t * (2 * factor.detach() - factor)

    assert not attnlab.audit("dot | softmax | backwards", causal=False, checks=["numerics"]).passed


@pytest.mark.usefixtures("own_stages")
def test_a_distance_whose_gradient_is_lost_at_zero_is_found() -> None:
    @stage("careless_distance")
    @dataclasses.dataclass(frozen=True)
    class CarelessDistance(Score):
        """−‖q − k‖, whose derivative at 0 is not a number."""

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return -(q[:, :, :, None] - k[:, :, None]).square().sum(-1).sqrt()

    finding = attnlab.audit("careless_distance | softmax", causal=False, checks=["numerics"]).findings["numerics"]
    assert not finding.passed
    assert "equals its key" in finding.sentence


@pytest.mark.usefixtures("own_stages")
def test_what_a_gate_of_zero_hides_at_first_is_no_dead_gradient() -> None:
    from attnlab.mechanisms import Output
    from attnlab.mechanisms.stage import Dims, Parameter

    @stage("opening")
    @dataclasses.dataclass(frozen=True)
    class Opening(Output):
        """The output times a learned number that starts at 0."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"gate": Parameter((dims.num_heads,), 0.0, 0.0)}

        def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
            return output * p["gate"][:, None, None]

    finding = attnlab.audit("dot | softmax | opening", checks=["gradient"]).findings["gradient"]
    assert finding.passed
    assert "only once training has moved" in finding.sentence


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


@pytest.mark.parametrize("line", ["euclidean | identity", "manhattan | identity"])
def test_weights_whose_sum_grows_with_the_length_are_found(line: str) -> None:
    assert not attnlab.audit(line, checks=["magnitude"]).passed


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


def test_a_kernel_is_blamed_only_against_others_in_the_same_trial() -> None:
    subject = Subject.of(Mechanism(), causal=True)
    tried = FindingPart("change, causal, sdpa, float32", 0.0, 0.0, kernel="sdpa")
    alone = FindingPart("change, causal, blockwise, float32, training", 1.0, 0.0, kernel="blockwise")
    beside = FindingPart("change, causal, reference, float32, training", 0.0, 0.0, kernel="reference")
    assert subject.blame([tried, alone], "the stages") == "the stages"
    assert subject.blame([tried, alone, beside], "the stages").startswith("kernel blockwise")
