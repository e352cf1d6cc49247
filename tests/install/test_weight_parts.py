"""Weights by what they are for: arms that tie projections begin like the others in all they have in common."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.install.weight_parts import weight_parts

from .models import build


def parts(structure: str, line: str) -> dict[str, Tensor]:
    """Return the parts of a model's weights after a mechanism was installed."""
    return dict(weight_parts(attnlab.install(build(structure), line)))


@pytest.mark.parametrize("structure", ["gpt2", "phi3 fused", "bert", "llama"])
def test_the_parts_of_a_model_are_all_its_weights(structure: str) -> None:
    model = attnlab.install(build(structure), "dot | softmax")
    found = dict(weight_parts(model))
    assert sum(tensor.numel() for tensor in found.values()) == sum(one.numel() for one in model.parameters())
    is_fused = structure in ("gpt2", "phi3 fused")
    assert any(name.endswith("weight[k]") for name in found) == is_fused


@pytest.mark.parametrize("structure", ["gpt2", "bert"])
@pytest.mark.parametrize(("share", "tied_parts"), [("qk", "k"), ("qkv", "kv")])
def test_tied_projections_keep_the_queries_and_leave_out_what_is_tied(
    structure: str, share: str, tied_parts: str
) -> None:
    apart = parts(structure, "dot | softmax")
    tied = parts(structure, f"dot | softmax | share({share})")
    assert tied.keys() < apart.keys()
    assert all(torch.equal(tied[name], apart[name]) for name in tied)
    missing = apart.keys() - tied.keys()
    marks = {"k": ("[k]", ".key."), "v": ("[v]", ".value.")}
    assert all(any(mark in name for part in tied_parts for mark in marks[part]) for name in missing)
    assert len(missing) == 4 * len(tied_parts)  # weight and bias in two layers
