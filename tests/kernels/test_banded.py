"""The banded kernel equals the reference wherever queries, keys and positions lie; its cost grows with the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab import attend, explain
from attnlab.errors import KernelError, ShapeError
from attnlab.kernels import banded_softmax
from attnlab.kernels.band import Band
from attnlab.kernels.call import Request
from attnlab.mechanisms import Mask, Mechanism, Positions, stage

Tensors = tuple[Tensor, Tensor, Tensor]

LINES = (
    "dot | softmax", "dot | softmax(sink=learned)", "dot | relu(divide=n)", "euclidean | softmax",
    "manhattan | sigmoid", "dot | stick_breaking", "dot | softmax | top_k(3)",
)  # fmt: skip
MASKS = ("window(1)", "window(5)", "window(24)", "chunk(7)", "window(9) | chunk(20)")
SITUATIONS = {  # queries, keys, causal, mask
    "causal": (100, 100, True, None),
    "causal, padded": (130, 130, True, "keys"),
    "padded": (100, 100, False, "keys"),
    "pairs": (61, 61, False, "pairs"),
    "cached": (30, 80, True, None),
    "one query": (1, 90, True, "keys"),
    "more queries than keys": (70, 64, True, None),
}


def solve(tensors: Tensors, line: str, kernel: str, **options: Any) -> list[Tensor]:
    out = attend(*tensors, line, kernel=kernel, **options)
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    return [out, *torch.autograd.grad(out, tensors, weight, allow_unused=True, materialize_grads=True)]


def draw(num_queries: int, num_keys: int) -> Tensors:
    generator = torch.Generator().manual_seed(num_queries)

    def draw_one(length: int) -> Tensor:
        return torch.randn(2, 2, length, 8, generator=generator, dtype=torch.float64).requires_grad_()

    return draw_one(num_queries), draw_one(num_keys), draw_one(num_keys)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("line", LINES)
def test_blocks_compute_the_reference(line: str, masks: str, situation: str) -> None:
    num_queries, num_keys, causal, kind = SITUATIONS[situation]
    tensors = draw(num_queries, num_keys)
    mask = None
    if kind is not None:
        mask = torch.rand(2, 1, 1 if kind == "keys" else num_queries, num_keys) > 0.3
    exact, banded = (
        solve(tensors, f"{line} | {masks}", kernel, causal=causal, mask=mask) for kernel in ("reference", "banded")
    )
    for a, b in zip(exact, banded, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("masks", ["window(6)", "chunk(10)"])
def test_left_padding_moves_positions_and_no_window(masks: str) -> None:
    tensors, padding = draw(90, 90), (0, 13)
    visible = torch.stack([torch.arange(90) >= n for n in padding])
    positions = (visible.long().cumsum(-1) - 1).clamp(min=0)
    options = {"causal": True, "mask": visible[:, None, None], "positions": positions}
    exact, banded = (
        solve(tensors, f"dot | softmax | {masks}", kernel, **options) for kernel in ("reference", "banded")
    )
    for a, b in zip(exact, banded, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-11)
    q, k, v = (x[1:, :, 13:] for x in tensors)
    alone = attend(q, k, v, f"dot | softmax | {masks}", causal=True)
    torch.testing.assert_close(banded[0][1:, :, 13:], alone, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("masks", ["window(6)", "chunk(10)"])
def test_slots_of_a_static_cache_and_one_token_at_a_time(masks: str) -> None:
    q, k, v = (x.detach() for x in draw(60, 60))
    line = f"dot | softmax | {masks}"
    whole = attend(q, k, v, line, causal=True)
    slots = torch.arange(80)
    more = torch.zeros(2, 2, 20, 8, dtype=torch.float64)
    for at in (0, 5, 33, 59):
        token = q[:, :, at : at + 1]
        cached = attend(token, k[:, :, : at + 1], v[:, :, : at + 1], line, causal=True)
        positions = (torch.tensor([at]), slots)
        wide_k, wide_v = (torch.cat([x, more], 2) for x in (k, v))
        static = attend(
            token, wide_k, wide_v, line, mask=(slots <= at)[None, None, None], positions=positions, kernel="banded"
        )
        for out in (cached, static):
            torch.testing.assert_close(out, whole[:, :, at : at + 1], rtol=1e-9, atol=1e-11)


def test_positions_with_gaps_are_not_indices() -> None:
    tensors, positions = draw(60, 60), torch.arange(60) * 3
    with pytest.raises(KernelError, match="consecutive positions"):
        attend(*tensors, "dot | softmax | window(6)", positions=positions, kernel="banded")
    far, near = (
        attend(*tensors, f"dot | softmax | window({w})", positions=at) for w, at in ((6, positions), (2, None))
    )
    torch.testing.assert_close(far, near)


def test_no_window_hides_a_prefix() -> None:
    q, k, v = draw(60, 63)
    out = attend(q, k, v, "dot | softmax | window(4)", causal=True, positions=torch.arange(-3, 60))
    seen = torch.arange(-3, 60) > torch.arange(60)[:, None] - 4
    mask = (seen | (torch.arange(63) < 3)) & (torch.arange(-3, 60) <= torch.arange(60)[:, None])
    torch.testing.assert_close(out, attend(q, k, v, mask=mask))


def test_pairs_grow_with_the_length_times_the_window() -> None:
    request = Request(Mechanism.parse("dot | softmax | window(256)"), 8192, 8192, causal=True)
    assert Band.of(request).num_pairs < 8192 * (256 + 96)
    short, long = (explain("dot | softmax | window(256)", n, causal=True) for n in (8192, 16384))
    assert short.kernel == "banded"
    assert "sdpa" in short.reason
    assert short.cost.exponent == 1
    assert long.cost.operations < 2.1 * short.cost.operations


@pytest.mark.parametrize(
    ("window", "length", "causal", "kernel", "why"),
    [
        (16, 256, True, "sdpa", "is slower below 512 keys"),
        (16, 512, True, "banded", ""),
        (256, 512, True, "banded", ""),
        (256, 512, False, "sdpa", "has no keys to skip"),
        (300, 512, True, "sdpa", "a block of queries sees 395 of 512, and 75% is the most"),
        (256, 1024, False, "banded", ""),
    ],
)
def test_a_band_is_chosen_where_it_skips_enough(window: int, length: int, causal: bool, kernel: str, why: str) -> None:
    line = f"dot | softmax | window({window})"
    found = explain(line, length, causal=causal)
    assert found.kernel == kernel
    assert why in str(found)
    assert bool(why) == ("banded" in found.refused)
    assert explain("dot | softmax | window(16)", length, kernel="banded").kernel == "banded"


@pytest.mark.parametrize("kind", ["none", "keys", "keys of each head"])
def test_softmax_in_a_band_does_not_depend_on_how_heads_are_grouped(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banded_softmax, "NUM_PAIRS", 1)
    tensors = draw(150, 150)
    mask = None if kind == "none" else torch.rand(2, 1 if kind == "keys" else 2, 1, 150) > 0.3
    exact, banded = (
        solve(tensors, "cosine | softmax | window(30)", kernel, causal=True, mask=mask)
        for kernel in ("reference", "banded")
    )
    for a, b in zip(exact, banded, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-11)


def test_scores_far_apart_neither_overflow_nor_reach_masked_keys() -> None:
    q, k, v = (x.detach() for x in draw(150, 150))
    k[:, :, 40] *= 1e4  # queries beyond the window do not see it
    tensors = (q.requires_grad_(), k.requires_grad_(), v.requires_grad_())
    exact, banded = (
        solve(tensors, "dot | softmax | window(30)", kernel, causal=True) for kernel in ("reference", "banded")
    )
    # Weights that are recomputed from their logsumexp lose the digits before the point of their scores.
    for a, b in zip(exact, banded, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own, when it traces
def test_a_compiled_caller_computes_the_same_in_a_band() -> None:
    torch.compiler.reset()
    tensors, mechanism = draw(100, 100), Mechanism.parse("dot | softmax | window(9)")

    def compute(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, mechanism, causal=True).square().sum()

    eager, compiled = (
        torch.autograd.grad(function(*tensors), tensors)
        for function in (compute, torch.compile(compute, backend="aot_eager", fullgraph=True))
    )
    for a, b in zip(eager, compiled, strict=True):
        torch.testing.assert_close(b, a)


@pytest.mark.usefixtures("own_stages")
def test_a_window_of_each_head_is_computed_too() -> None:
    @stage("by_head")
    @dataclass(frozen=True)
    class ByHead(Mask):
        """The first head sees 4 tokens, the second 9."""

        is_by_distance = True
        reach = 9

        def __call__(self, *, positions: Positions) -> Tensor:
            return positions.distances.abs() < torch.tensor([4, 9])[:, None, None]

    tensors = draw(100, 100)
    exact, banded = (
        solve(tensors, "dot | softmax | by_head", kernel, causal=True) for kernel in ("reference", "banded")
    )
    for a, b in zip(exact, banded, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("own_stages")
def test_a_mask_of_another_dtype_is_refused_by_name() -> None:
    @stage("numbers")
    @dataclass(frozen=True)
    class Numbers(Mask):
        """Distances instead of booleans."""

        def __call__(self, *, positions: Positions) -> Tensor:
            return positions.distances

    with pytest.raises(ShapeError, match="'numbers': mask must be boolean"):
        attend(*draw(4, 4), "dot | softmax | numbers")
