"""Projections are recognised by structure; a wrapped or unknown one is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import InstallError
from attnlab.install.projections import describe_unknown, find_projections
from tests.install.models import WIDTH, build


@pytest.mark.parametrize(
    ("name", "widths"),
    [("bert", [32, 32, 32]), ("gpt2", [32, 32, 32]), ("phi3 fused", [32, 16, 16]), ("opt", [32, 32, 32])],
)
def test_projections_are_found_by_structure(name: str, widths: list[int]) -> None:
    module = next(module for module in build(name).modules() if find_projections(module, WIDTH))
    projections = find_projections(module, WIDTH)
    assert projections is not None
    assert [projections[part].width for part in ("q", "k", "v")] == widths
    assert all(projection.is_fused == (name in ("gpt2", "phi3 fused")) for projection in projections.values())
    output = torch.randn(1, 2, sum(widths) if projections["v"].is_fused else widths[2])
    assert torch.equal(projections["v"].cut(output), output[..., -widths[2] :])
    zeroed = projections["v"].replace(output, torch.zeros(1, 2, widths[2]))
    assert zeroed.shape == output.shape
    assert not projections["v"].cut(zeroed).any()
    assert find_projections(nn.Linear(2, 2), WIDTH) is None


def test_a_wrapped_projection_is_refused() -> None:
    model = build("bert")
    value = model.encoder.layer[0].attention.self.value
    value.forward = lambda x: x
    with pytest.raises(InstallError, match="wrapped"):
        attnlab.install(model, "value-bypass")
    attnlab.install(model, "dot | softmax")


def test_an_unknown_structure_is_described() -> None:
    assert describe_unknown(nn.Linear(2, 2), "own").startswith("the structure of 'own' (Linear) is not recognised: no")


def test_an_unknown_structure_refuses_what_acts_on_projections() -> None:
    with pytest.raises(
        InstallError, match=r"'layers.0.attention' \(GPTNeoXAttention\) are interleaved in one projection"
    ):
        attnlab.install(build("gpt-neox"), "value-bypass")
