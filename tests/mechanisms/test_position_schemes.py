"""Position schemes depend on distances, and say what they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab import PositionScheme, attend, audit, explain
from attnlab.errors import MechanismError, ShapeError
from attnlab.mechanisms import Dims, Mechanism, Parameter, Params, Positions, stage

LINES = ("dot | softmax | rope", "dot | softmax | alibi", "dot | softmax | relative(buckets=8, max_distance=20)")


@pytest.mark.parametrize("line", LINES)
def test_a_common_shift_of_all_positions_changes_nothing(line: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 30, 8, dtype=torch.float64)
    moved = attend(q, k, v, line, causal=True, positions=torch.arange(30) + 5)
    torch.testing.assert_close(moved, attend(q, k, v, line, causal=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("line", LINES)
def test_one_token_at_a_time_equals_all_at_once(line: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 30, 8, dtype=torch.float64)
    whole = attend(q, k, v, line, causal=True)
    token = attend(q[:, :, 20:21], k[:, :, :21], v[:, :, :21], line, causal=True)
    torch.testing.assert_close(token, whole[:, :, 20:21])


def test_without_positions_the_order_of_keys_is_free() -> None:
    q, k, v = torch.randn(3, 2, 2, 30, 8, dtype=torch.float64)
    order = torch.randperm(30)
    torch.testing.assert_close(attend(q, k[:, :, order], v[:, :, order], "dot | softmax | nope"), attend(q, k, v))


def test_an_odd_number_of_rotated_channels_is_refused() -> None:
    q = torch.randn(1, 2, 4, 6)
    with pytest.raises(ShapeError, match="share of head_dim=6 is 3 channels"):
        attend(q, q, q, "dot | softmax | rope(share=0.5)")


def test_schemes_have_fast_kernels() -> None:
    kernels = {line: explain(line, 512, causal=True).kernel for line in LINES}
    assert list(kernels.values()) == ["sdpa", "blockwise", "blockwise"]
    assert explain("dot | softmax | alibi | window(32)", 512, causal=True).kernel == "banded"


def test_lines_round_trip() -> None:
    for line in (*LINES, "dot | softmax | nope", "dot | softmax | rope(base=500, share=0.5)"):
        assert str(Mechanism.parse(line)) == line
    assert str(Mechanism.parse("dot | softmax | positions(model)")) == "dot | softmax"


def declare(**members: Any) -> None:
    stage("own_scheme")(dataclass(frozen=True)(type("Own", (PositionScheme,), {**members, "__module__": __name__})))


def learned_distances(self: Any, positions: Positions, p: Params) -> Tensor:
    return -p["slope"][:, None, None] * positions.distances.abs()


def declare_slope(self: Any, dims: Dims) -> dict[str, Parameter]:
    return {"slope": Parameter((dims.num_heads,), start=lambda head: 0.1 * (head + 1))}


def turn(self: Any, t: Tensor, positions: Tensor) -> Tensor:
    angle = 0.1 * positions[..., None].to(t)
    first, second = t.chunk(2, -1)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu", "manhattan | softmax"])
def test_a_bias_of_ones_own_combines_with_every_score(line: str) -> None:
    declare(bias_of="distances", position_bias=learned_distances, parameters=declare_slope)
    q, k, v = torch.randn(3, 1, 2, 40, 8, dtype=torch.float64)
    own, without = (attend(q, k, v, f"{line} | {scheme}", causal=True) for scheme in ("own_scheme", "nope"))
    assert not torch.allclose(own, without)
    assert audit(f"{line} | own_scheme", causal=True, checks=["leak", "prefix", "padding", "equivalences"]).passed


@pytest.mark.usefixtures("own_stages")
def test_a_rotation_of_ones_own_keeps_the_fused_kernel() -> None:
    declare(rotates=True, rotate=turn)
    assert explain("dot | softmax | own_scheme", length=300, causal=True).kernel == "sdpa"
    assert audit("dot | softmax | own_scheme", causal=True, checks=["leak", "prefix", "padding", "equivalences"]).passed


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"position_bias": learned_distances}, 'declare bias_of = "distances" if'),
        ({"rotate": turn}, "declare rotates = True"),
    ],
)
def test_a_method_without_its_trait_is_refused(members: dict[str, Any], words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        declare(**members)


@pytest.mark.usefixtures("own_stages")
def test_results_of_other_shapes_and_wrong_declarations_are_found() -> None:
    q = torch.randn(1, 2, 6, 8)
    declare(rotates=True, rotate=lambda self, t, positions: t[..., :4])
    with pytest.raises(ShapeError, match=r"'own_scheme' must return .* = \(1, 2, 6, 8\), not \(1, 2, 6, 4\)"):
        attend(q, q, q, "dot | softmax | own_scheme")
    declare(bias_of="distances", position_bias=lambda self, positions, p: positions.distances[0].float())
    for kernel in ("auto", "reference"):
        with pytest.raises(ShapeError, match=r"position_bias of 'own_scheme' must return \[b h q k\]"):
            attend(q, q, q, "dot | softmax | own_scheme", kernel=kernel)

    def add_positions(self: Any, positions: Positions, p: Params) -> Tensor:
        return 0.1 * (positions.distances * positions.queries[..., None]).to(torch.get_default_dtype())

    declare(bias_of="distances", position_bias=add_positions)
    finding = audit("dot | softmax | own_scheme", causal=True, checks=["equivalences"]).findings["equivalences"]
    assert 'Own declares bias_of = "distances"' in finding.sentence
