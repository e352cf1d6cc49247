"""An audit says the plain thing first: which stage returns numbers that are not finite, or takes a block for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.audits.stage_faults import (
    find_stage_of_hidden_keys,
    find_stage_of_hidden_tokens,
    find_stage_of_tokens,
)
from attnlab.audits.subject import Subject
from attnlab.mechanisms import Dims, Features, HeadMixing, Output, Parameter, Params, Positions, Score, Weights, stage
from tests.audits.faults import run_check

from .in_model.models import gpt2

pytestmark = pytest.mark.usefixtures("own_stages")

OUTER = nn.Parameter(torch.ones(2))


def register() -> None:
    """Register stages of four slots that return NaN for ordinary inputs."""

    @stage("root_score")
    @dataclass(frozen=True)
    class RootScore(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (q @ k.mT).sqrt()

    @stage("log_weights")
    @dataclass(frozen=True)
    class LogWeights(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return (scores - 5).log()

    @stage("log_heads")
    @dataclass(frozen=True)
    class LogHeads(HeadMixing):
        def combine(self, output: Tensor, p: Params, layer: int) -> Tensor:
            return output.log()

    @stage("log_output")
    @dataclass(frozen=True)
    class LogOutput(Output):
        def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
            return output.log()


@pytest.mark.parametrize(
    ("line", "slot", "name"),
    [
        ("root_score | relu", "score", "root_score"), ("root_score | log_weights | log_output", "score", "root_score"),
        ("dot | log_weights", "weights", "log_weights"), ("dot | softmax | log_heads", "heads", "log_heads"),
        ("dot | identity | forget(per=channel) | head_norm | log_output", "output", "log_output"),
    ],
)  # fmt: skip
def test_the_first_stage_that_returns_no_finite_number_is_named(line: str, slot: str, name: str) -> None:
    register()
    for causal in (True, False):
        finding = run_check(line, "numerics", causal=causal)
        assert (finding.passed, finding.kind, finding.where) == (False, "numerics", f"the {slot} stage '{name}'")
        assert f"outputs of ordinary inputs are not finite; the first to return such a number is the {slot} stage" in (
            finding.sentence
        )


def test_the_cause_comes_first_and_other_checks_name_no_other() -> None:
    register()
    audit = attnlab.audit("dot | log_weights", causal=True)
    names = list(audit.findings)
    assert names[0] == "numerics"
    assert names[-1] == "cost"
    for name in names[1:-1]:
        finding = audit.findings[name]
        assert not finding.passed
        assert finding.sentence == "Not checked: outputs of ordinary inputs are not finite."
        assert finding.where == "the weights stage 'log_weights'"
    assert audit.findings["causal leak"].kind == "leak"
    assert audit.record()["findings"]["weights"]["figure"] == "nan"
    assert audit.figure()
    both_ways = attnlab.audit("dot | log_weights", causal=False, checks=["leak", "padding"])
    assert list(both_ways.findings) == ["padding and batch invariance"]


def test_in_a_model_the_stage_is_named_too() -> None:
    register()
    audit = attnlab.audit(attnlab.install(gpt2(), "dot | log_weights"))
    assert next(iter(audit.findings)) == "numerics"
    assert {finding.where for finding in audit.findings.values()} == {"the weights stage 'log_weights'"}
    model: Any = gpt2()
    with torch.no_grad():
        model.transformer.ln_f.weight[0] = torch.nan
    finding = attnlab.audit(model, checks=["padding"]).findings["padding"]
    assert finding.sentence == "Not checked: outputs of ordinary inputs are not finite."


def test_scores_of_minus_infinity_are_found() -> None:
    @stage("hiding_score")
    @dataclass(frozen=True)
    class HidingScore(Score):
        """What a Mask should do."""

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return (q @ k.mT).masked_fill(positions.distances.abs() > 4, -torch.inf)

    finding = run_check("hiding_score | softmax", "numerics", causal=True)
    assert not finding.passed
    assert "hide pairs by a Mask stage" in finding.sentence


def make_inside(scores: Tensor) -> Tensor:
    return nn.Parameter(torch.ones(2))


@pytest.mark.parametrize("find", [lambda scores: OUTER, make_inside], ids=["global", "made in the call"])
def test_a_trainable_tensor_that_no_stage_declares_is_found(find: Callable[[Tensor], Tensor]) -> None:
    @stage("hidden_parameter")
    @dataclass(frozen=True)
    class HiddenParameter(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"z": Parameter((dims.num_heads,), 1.0, 1.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores * (p["z"] * find(scores).to(scores))[:, None, None], -1)

    finding = run_check("dot | hidden_parameter | head_norm", "gradient", causal=True)
    assert not finding.passed
    assert "a trainable Parameter [2] that no stage declares" in finding.sentence
    assert finding.where == "the weights stage 'hidden_parameter'"


def test_a_stage_that_counts_from_its_block_is_named_and_not_the_kernel() -> None:
    @stage("counting_score")
    @dataclass(frozen=True)
    class CountingScore(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            distance = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
            return (q @ k.mT - 0.1 * distance.abs()).to(q.dtype)

    @stage("counting_weights")
    @dataclass(frozen=True)
    class CountingWeights(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores * torch.arange(1, scores.shape[2] + 1).to(scores)[:, None], -1)

    for line, name in (("counting_score | softmax", "score"), ("dot | counting_weights", "weights")):
        audit = attnlab.audit(line, causal=True, checks=["prefix", "equivalences"])
        for finding in audit.failed:
            assert finding.where.startswith(f"the {name} stage 'counting_{name}': it gives other numbers for a block")
        assert "prefix consistency" in {finding.name for finding in audit.failed}


def test_a_stage_that_sees_other_tokens_is_named_and_not_its_neighbours() -> None:
    @stage("tokens_centred")
    @dataclass(frozen=True)
    class TokensCentred(Features):
        """Queries and keys minus their mean over all tokens."""

        def __call__(self, t: Tensor, side: str, p: Params) -> Tensor:
            return t - t.mean(2, keepdim=True)

    line = "dot | softmax | norm(rms) | tokens_centred | bypass(alpha=0.5)"
    said = "the features stage 'tokens_centred': it gives other numbers for some tokens than for all of them"
    for finding in attnlab.audit(line, checks=["padding", "leak"]).failed:
        assert finding.where.startswith(said)
    model = attnlab.install(gpt2(), line)
    (leak,) = attnlab.audit(model, checks=["leak"]).failed
    assert leak.where.startswith(said)
    assert not find_stage_of_tokens(attnlab.Mechanism.parse("dot | softmax | shift(keys) | value_residual | gate"))


def test_an_output_stage_that_sees_other_tokens_is_named() -> None:
    @stage("output_smoothed")
    @dataclass(frozen=True)
    class OutputSmoothed(Output):
        """The output plus its mean over all tokens."""

        def __call__(self, output: Tensor, q: Tensor, p: Params) -> Tensor:
            return output + output.mean(2, keepdim=True)

    line = "dot | softmax | norm(rms) | bypass(alpha=0.5) | head_norm | output_smoothed"
    said = "the output stage 'output_smoothed': with it, and not before it, an output depends on tokens"
    failed = attnlab.audit(line, causal=True, checks=["padding", "leak", "prefix"]).failed
    assert len(failed) == 3
    assert all(finding.where.startswith(said) for finding in failed)
    (leak,) = attnlab.audit(attnlab.install(gpt2(), line), checks=["leak"]).failed
    assert leak.where.startswith(said)
    sound = attnlab.Mechanism.parse("dot | softmax | shift(keys) | value_residual | gate | window(5)")
    assert not find_stage_of_hidden_tokens(Subject.create(sound, None))


def test_a_sum_over_hidden_keys_is_found() -> None:
    @stage("late_weights")
    @dataclass(frozen=True)
    class LateWeights(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return visible * scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))

    late, *sound = (
        find_stage_of_hidden_keys(Subject.create(attnlab.Mechanism.parse(line), True))
        for line in ("dot | late_weights", "dot | softmax", "cosine | relu(divide=n)", "dot | softmax | window(3)")
    )
    assert late.startswith("the weights stage 'late_weights': it gives other numbers if")
    assert sound == ["", "", ""]
    found = run_check("dot | late_weights", "prefix consistency", causal=True)
    assert "stage 'late_weights': it gives other numbers if keys that a query must not see" in found.where
