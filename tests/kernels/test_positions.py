"""`positions=` of attend: what it defaults to, what it may be, and what a stage is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab import Attention, attend, weights
from attnlab.errors import MechanismError, ShapeError
from attnlab.mechanisms import REGISTRY, Mechanism, Params, Positions, Score, Value, Weights, stage

pytestmark = pytest.mark.usefixtures("told")

TOLD: list[Positions | None] = []


@pytest.fixture
def told(own_stages: None) -> None:
    """Register scores of −|i − j|, which write down what they were told."""

    @stage("ramp")
    @dataclass(frozen=True)
    class Ramp(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            TOLD.append(positions)
            return (q[..., :, None, 0] * 0 - positions.distances.abs()).expand(*q.shape[:3], k.shape[2])

    @stage("perhaps")
    @dataclass(frozen=True)
    class Perhaps(Weights):
        def __call__(
            self, scores: Tensor, n: Tensor, p: Params, *, positions: Positions | None = None,
            visible: Tensor | None = None,
        ) -> Tensor:  # fmt: skip
            TOLD.append(positions)
            return scores if visible is None else scores * visible

    TOLD.clear()


def tensors(num_queries: int, num_keys: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return tuple(torch.randn(2, 2, n, 4, generator=draw) for n in (num_queries, num_keys, num_keys))  # type: ignore[return-value]


@pytest.mark.parametrize("kernel", ["rowwise", "reference"])
@pytest.mark.parametrize(
    ("num_queries", "num_keys", "given", "queries", "keys"),
    [
        (3, 3, None, [[0, 1, 2]], [[0, 1, 2]]),
        (2, 4, None, [[2, 3]], [[0, 1, 2, 3]]),
        (3, 2, None, [[-1, 0, 1]], [[0, 1]]),
        (1, 3, [5, 7, 9], [[9]], [[5, 7, 9]]),
        (3, 3, [[-1, 0, 1], [0, 1, 2]], [[-1, 0, 1], [0, 1, 2]], [[-1, 0, 1], [0, 1, 2]]),
        (3, 2, ([4, 5, 6], [[0, 1], [2, 3]]), [[4, 5, 6]], [[0, 1], [2, 3]]),
    ],
)
def test_a_stage_is_told_where_queries_and_keys_stand(
    num_queries: int, num_keys: int, given: Any, queries: list[Any], keys: list[Any], kernel: str
) -> None:
    q, k, v = tensors(num_queries, num_keys)
    places: Any = tuple(map(torch.tensor, given)) if isinstance(given, tuple) else given
    places = torch.tensor(given) if isinstance(given, list) else places
    attend(q, k, v, "ramp | softmax", positions=places, kernel=kernel)
    (found,) = TOLD
    assert found is not None
    assert found.queries.tolist() == [[row] for row in queries]
    assert found.keys.tolist() == [[row] for row in keys]
    assert found.distances.shape == (max(len(queries), len(keys)), 1, num_queries, num_keys)


def test_weights_and_the_module_take_positions_too() -> None:
    q, k, v = tensors(3, 3)
    places = torch.tensor([0, 10, 20])
    out = attend(q, k, v, "ramp | softmax", positions=places)
    torch.testing.assert_close(weights(q, k, "ramp | softmax", positions=places) @ v, out)
    layer = Attention("ramp | softmax", num_heads=2, head_dim=4)
    torch.testing.assert_close(layer(q, k, v, positions=places), out)
    assert not torch.allclose(layer(q, k, v), out)


def test_a_default_of_none_is_only_replaced_where_there_is_something_to_say() -> None:
    q, k, v = tensors(3, 3)
    attend(q, k, v, "dot | perhaps")
    (found,) = TOLD
    assert found is not None
    assert found.keys.shape == (1, 1, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.arange(4), r"positions must be \[length=3\] or \[batch=2, length=3\], not \(4,\)"),
        (torch.zeros(3), "positions must be a tensor of integers, not torch.float32"),
        ([0, 1, 2], "positions must be a tensor of integers, not list"),
        ((torch.arange(3), torch.arange(2)), r"positions of the keys must be \[length=3\]"),
        ((torch.arange(3),), "a pair for queries and keys, not 1 tensors"),
    ],
)
def test_positions_that_do_not_fit_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        attend(*tensors(3, 3), "ramp | softmax", positions=given)
    with pytest.raises(ShapeError, match=message):
        attend(*tensors(3, 3), "dot | softmax", positions=given)


def test_more_queries_than_keys_need_positions_of_their_own() -> None:
    with pytest.raises(ShapeError, match="do not determine those of 3 queries; pass a pair"):
        attend(*tensors(3, 2), "ramp | softmax", positions=torch.arange(2))


def test_a_stage_that_asks_for_what_it_is_not_given_is_refused_when_it_is_written() -> None:
    asked = "asks for 'position', which a score stage is not given, did you mean 'positions'"
    with pytest.raises(MechanismError, match=f"stage 'off' {asked}"):

        @stage("off")
        @dataclass(frozen=True)
        class Off(Score):
            def __call__(self, q: Tensor, k: Tensor, p: Params, *, position: Tensor) -> Tensor:
                return q @ k.mT

    with pytest.raises(MechanismError, match="asks for 'positions', which a values stage is not given"):

        @stage("late")
        @dataclass(frozen=True)
        class Late(Value):
            def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *, positions: Positions) -> Tensor:
                return t


def test_what_a_stage_needs_is_data() -> None:
    assert REGISTRY["ramp"].needs == {"positions": True}
    assert REGISTRY["perhaps"].needs == {"positions": False, "visible": False}
    assert REGISTRY["dot"].needs == {}
    assert not Mechanism.parse("dot | softmax").find_stages_needing("positions")


@pytest.mark.parametrize("kernel", ["sdpa", "rowwise"])
def test_a_token_that_a_mask_hides_from_itself_still_has_its_own_place(kernel: str) -> None:
    q, k, v = torch.randn(3, 2, 2, 9, 4, dtype=torch.float64)
    mask = ~torch.eye(9, dtype=torch.bool)
    for line in ("dot | softmax(sink=learned) | forget(rate=0.5) | rope", "dot | softmax | exclusive(alpha=1) | rope"):
        found, expected = (attend(q, k, v, line, causal=True, mask=mask, kernel=name) for name in (kernel, "reference"))
        torch.testing.assert_close(found, expected)
    plain, rotated = (
        attend(q, torch.zeros_like(k), v, f"dot | softmax | exclusive(alpha=1){rest}", causal=True, mask=mask)
        for rest in ("", " | rope")
    )
    torch.testing.assert_close(plain, rotated)
