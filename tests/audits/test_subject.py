"""A mechanism under audit: sizes at which kernels split, and kernels compared in the same situation."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from attnlab.audits import FindingPart, Mode, Subject
from attnlab.audits.equivalences import SEVERAL, SPANS
from attnlab.audits.stage_faults import locate_fault
from attnlab.audits.subject import LONG, MANY_HEADS
from attnlab.kernels import rowwise, running
from attnlab.kernels.tiles import Tiling
from attnlab.mechanisms import Mechanism, Params, Weights, stage


def test_a_kernel_is_blamed_only_against_others_in_the_same_trial() -> None:
    subject = Subject.create(Mechanism(), causal=True)
    tried = FindingPart("change, causal, kernel sdpa, float32", 0.0, 0.0, kernel="sdpa")
    alone = FindingPart("change, causal, kernel blockwise, float32, training", 1.0, 0.0, kernel="blockwise")
    beside = FindingPart("change, causal, kernel reference, float32, training", 0.0, 0.0, kernel="reference")
    assert locate_fault(subject, [tried, alone], "the stages") == "the stages"
    assert locate_fault(subject, [tried, alone, beside], "the stages").startswith("kernel blockwise")


def test_the_sizes_of_an_audit_are_those_at_which_every_kernel_splits() -> None:
    assert rowwise.count_rows(SEVERAL, MANY_HEADS, LONG) < LONG
    tiles = list(Tiling(SEVERAL, MANY_HEADS, LONG, LONG, causal=False))
    assert len({tile.start for tile in tiles}) > 1
    assert len({tile.heads.start for tile in tiles}) > 1
    assert len({tile.batch.start for tile in tiles}) > 1
    assert len(list(running.blocks(SEVERAL * MANY_HEADS, LONG))) > 1
    assert len(list(running.spans(SPANS["linear"]))) > 1
    assert SPANS["sdpa"] > 512


def test_inputs_and_dropout_are_the_same_in_every_call() -> None:
    subject = Subject.create(Mechanism.parse("dot | softmax | token_dropout(0.5)"), causal=True)
    inputs, mode = subject.inputs(2, 16), Mode(True, dropout=0.2, training=True)
    assert all(torch.equal(t, subject.inputs(2, 16)[name]) for name, t in inputs.items())
    assert torch.equal(subject.attend(inputs, mode), subject.attend(inputs, mode))
    assert not torch.equal(subject.inputs(2, 16, salt=1)["q"], inputs["q"])


@pytest.mark.usefixtures("own_stages")
def test_a_false_declaration_is_named_in_place_of_a_kernel() -> None:
    @stage("declared_pointwise")
    @dataclass(frozen=True)
    class DeclaredPointwise(Weights):
        pointwise = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores, -1)

    subject = Subject.create(Mechanism.parse("dot | declared_pointwise"), causal=True)
    failed = FindingPart("change, causal, kernel blockwise, float32", 1.0, 0.0, kernel="blockwise")
    sound = FindingPart("change, causal, kernel reference, float32", 0.0, 0.0, kernel="reference")
    assert "DeclaredPointwise declares pointwise = True" in locate_fault(subject, [failed, sound], "the stages")
