"""Costs by counting: how they grow, and how large numbers are written."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.kernels import attend
from attnlab.kernels.call import MaskKind, Request
from attnlab.kernels.choose import explain
from attnlab.kernels.cost import Cost, estimate, show_with_prefix
from attnlab.kernels.measure import peak_memory
from attnlab.mechanisms import Mask, Mechanism, Positions, Score, stage


def request(line: str, length: int, causal: bool = False) -> Request:
    return Request(Mechanism.parse(line), length, length, causal=causal)


@pytest.mark.parametrize(
    ("line", "kernel", "power"),
    [("cosine | identity", "linear", 1), ("dot | relu", "blockwise", 2), ("dot | relu", "reference", 2)],
)
def test_operations_grow_as_stated(line: str, kernel: str, power: int) -> None:
    short, long = (estimate(request(line, length), kernel) for length in (1024, 2048))
    assert long.operations / short.operations == pytest.approx(2**power)
    assert short.exponent == long.exponent == power


def test_a_causal_mask_halves_what_tiles_compute_and_not_what_the_reference_does() -> None:
    whole, causal = (request("dot | relu", 8192, is_causal) for is_causal in (False, True))
    ratio = estimate(causal, "blockwise").operations / estimate(whole, "blockwise").operations
    assert ratio == pytest.approx(0.5, abs=0.02)
    assert estimate(causal, "reference") == estimate(whole, "reference")


def test_only_the_reference_holds_a_vector_per_pair() -> None:
    dot, distance = request("dot | relu", 4096), request("manhattan | relu", 4096)
    assert estimate(distance, "reference").work_bytes == 64 * estimate(dot, "reference").work_bytes
    assert estimate(distance, "distance").work_bytes < estimate(dot, "reference").work_bytes


def test_work_space_has_the_precision_of_the_sums() -> None:
    single = request("dot | relu", 256)
    double = dataclasses.replace(single, dtype=torch.float64)
    assert estimate(double, "blockwise").work_bytes == 2 * estimate(single, "blockwise").work_bytes


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 "), (999, "999 "), (1000, "1 k"), (2.5e6, "2.5 M"), (3e9, "3 G"), (4.2e15, "4.2e+03 T")]
)
def test_large_numbers_have_a_prefix(number: float, text: str) -> None:
    assert show_with_prefix(number) == text


def test_a_cost_is_one_line() -> None:
    assert str(Cost(2e9, 3000, 1)) == "2 G operations forward, 3 kB of work space, time grows as n"
    assert str(Cost(2e9, 3000, 2)).endswith("n^2")


def register() -> None:
    """Register masks without a reach, one for all heads and one for each, and a score that only rowwise computes."""

    @stage("own_near")
    @dataclass(frozen=True)
    class Near(Mask):
        def __call__(self, *, positions: Positions) -> Tensor:
            return positions.distances.abs() < 64

    @stage("own_parity")
    @dataclass(frozen=True)
    class Parity(Mask):
        def __call__(self, *, positions: Positions) -> Tensor:
            return (positions.queries % 2)[..., None] == (positions.keys % 2)[..., None, :]

    @stage("own_by_head")
    @dataclass(frozen=True)
    class ByHead(Mask):
        def __call__(self, *, positions: Positions, num_heads: int) -> Tensor:
            return positions.distances.abs() < 8 * torch.arange(1, num_heads + 1)[:, None, None]

    @stage("own_product")
    @dataclass(frozen=True)
    class Product(Score):
        def __call__(self, q: Tensor, k: Tensor, p: object) -> Tensor:
            return q @ k.mT


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("line", "mask"),
    [
        *[(f"{rest} | {own}", "none") for own in ("own_near", "own_parity", "own_by_head")
          for rest in ("dot | softmax", "dot | relu", "own_product | softmax")],
        ("dot | softmax | window(64) | own_parity", "none"), ("dot | softmax", "pairs"), ("dot | relu", "pairs"),
    ],
)  # fmt: skip
def test_the_work_space_of_a_mask_is_what_it_takes(line: str, mask: MaskKind, causal: bool) -> None:
    """Within a factor of 2, as all estimates: torch allocates what no count of ours knows."""
    register()
    length = 768
    q, k, v = torch.randn(3, 1, 4, length, 64)
    given = torch.rand(1, 1, length, length) < 0.8 if mask == "pairs" else None
    attend(q, k, v, line, causal=causal, mask=given)
    with torch.no_grad():
        measured = peak_memory(lambda: attend(q, k, v, line, causal=causal, mask=given)) - v.nbytes
    estimated = explain(line, length=length, causal=causal, mask=mask).cost.work_bytes
    assert 0.5 < measured / estimated < 2


@pytest.mark.usefixtures("own_stages")
def test_a_mask_that_fails_is_named() -> None:
    @stage("own_failing")
    @dataclass(frozen=True)
    class Failing(Mask):
        def __call__(self, *, positions: Positions) -> Tensor:
            return positions.distances < torch.ones(3)

    with pytest.raises(MechanismError, match="'own_failing' raised RuntimeError"):
        explain("dot | softmax | own_failing", length=64)
