"""A mechanism under audit: sizes at which kernels split, and kernels compared in the same situation."""

import torch

from attnlab.audits import FindingPart, Mode, Subject
from attnlab.audits.equivalences import SEVERAL, SPANS
from attnlab.audits.subject import LONG, MANY_HEADS
from attnlab.kernels import rowwise, running
from attnlab.kernels.tiles import Tiling
from attnlab.mechanisms import Mechanism


def test_a_kernel_is_blamed_only_against_others_in_the_same_trial() -> None:
    subject = Subject.create(Mechanism(), causal=True)
    tried = FindingPart("change, causal, kernel sdpa, float32", 0.0, 0.0, kernel="sdpa")
    alone = FindingPart("change, causal, kernel blockwise, float32, training", 1.0, 0.0, kernel="blockwise")
    beside = FindingPart("change, causal, kernel reference, float32, training", 0.0, 0.0, kernel="reference")
    assert subject.locate_fault([tried, alone], "the stages") == "the stages"
    assert subject.locate_fault([tried, alone, beside], "the stages").startswith("kernel blockwise")


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
