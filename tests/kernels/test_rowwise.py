"""The seven stages of a new user in every kernel that accepts them, split or not: each is its formula, in fp64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import KernelError
from attnlab.kernels import initial_values, rowwise
from attnlab.kernels.prepare import prepare
from attnlab.kernels.rowwise import count_rows
from attnlab.mechanisms import Mechanism
from tests.user_stages import LINES, attend_by_formula, register

from .problems import Problem

pytestmark = pytest.mark.usefixtures("seven")

SITUATIONS = ("plain", "causal", "right padding", "left padding", "cached", "pairs", "grouped heads")
SPLIT = {"batch": 2, "heads": 16, "length": 150}
"""Sizes at which `rowwise` computes more than one block of queries."""


@pytest.fixture
def seven(own_stages: None) -> None:
    register()


def make(name: str, situation: str, batch: int, heads: int, length: int) -> tuple[Problem, dict[str, Tensor]]:
    """Return a problem of one of the stages, and the positions of queries and keys."""
    mechanism = Mechanism.parse(LINES[name])
    draw = torch.Generator().manual_seed(length)
    num_queries = length // 3 if situation == "cached" else length
    num_key_heads = heads // 2 if situation == "grouped heads" else heads
    tensors = {
        part: torch.randn(batch, h, n, 8, generator=draw, dtype=torch.float64)
        for part, h, n in (("q", heads, num_queries), ("k", num_key_heads, length), ("v", num_key_heads, length))
    }
    learned = initial_values(mechanism, heads, 8, 8)
    tensors |= {key: value.double() for key, value in learned.items()}
    mask = None
    keys = torch.arange(length).expand(batch, -1)
    if situation.endswith("padding"):
        real = torch.ones(batch, length, dtype=torch.bool)
        for b in range(1, batch):
            amount = length // 3
            real[b, slice(0, amount) if situation.startswith("left") else slice(length - amount, None)] = False
        mask = real[:, None, None]
        keys = real.long().cumsum(-1) - 1
    if situation == "pairs":
        mask = torch.rand(batch, 1, num_queries, length, generator=draw) > 0.3
        mask[0, 0, 2] = False  # a row that sees nothing
    causal = situation not in ("plain", "pairs")
    return Problem(mechanism, tensors, causal, mask), {"queries": keys[:, length - num_queries :], "keys": keys}


def solve(given: Problem, places: dict[str, Tensor], kernel: str) -> list[Tensor]:
    """Return the output of a kernel, and its gradients."""
    leaves = {name: t.clone().requires_grad_() for name, t in given.tensors.items()}
    learned = {name: t for name, t in leaves.items() if name not in "qkv"}
    out = attnlab.attend(
        leaves["q"], leaves["k"], leaves["v"], given.mechanism, causal=given.causal, mask=given.mask, kernel=kernel,
        parameters=learned, positions=(places["queries"], places["keys"]),
    )  # fmt: skip
    seed = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    return [out, *torch.autograd.grad(out, list(leaves.values()), seed, materialize_grads=True, allow_unused=True)]


def formula(name: str, given: Problem, places: dict[str, Tensor]) -> list[Tensor]:
    """Return the output of the formula, and its gradients."""
    leaves = {key: t.clone().requires_grad_() for key, t in given.tensors.items()}
    q, k, v = (leaves[part] for part in "qkv")
    offset = k.shape[2] - q.shape[2]
    mask = torch.ones(1, 1, 1, 1, dtype=torch.bool) if given.mask is None else given.mask
    full = mask.expand(q.shape[0], 1, q.shape[2], k.shape[2])

    def seen(b: int, i: int, j: int) -> bool:
        return bool(full[b, 0, i, j]) and (not given.causal or j <= i + offset)

    out = attend_by_formula(name, q, k, v, seen, (places["queries"], places["keys"]), leaves)
    seed = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    return [out, *torch.autograd.grad(out, list(leaves.values()), seed, materialize_grads=True, allow_unused=True)]


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", LINES)
def test_a_stage_is_its_formula_in_every_kernel(name: str, situation: str) -> None:
    given, places = make(name, situation, batch=2, heads=4, length=17)
    exact = formula(name, given, places)
    assert set(given.kernels) >= {"rowwise", "reference"}
    for kernel in given.kernels:
        for ours, theirs in zip(solve(given, places, kernel), exact, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", LINES)
def test_a_stage_is_its_formula_where_kernels_split(name: str, situation: str) -> None:
    given, places = make(name, situation, **SPLIT)
    q, k = given.tensors["q"], given.tensors["k"]
    if situation != "cached":
        assert count_rows(q.shape[0], q.shape[1], k.shape[2]) < q.shape[2], "this problem is not split"
    whole, split = solve(given, places, "reference"), solve(given, places, "rowwise")
    for ours, theirs in zip(split, whole, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    if situation in ("plain", "causal", "left padding"):
        with torch.no_grad():
            some = {**given.tensors, "q": q[:1, :, -3:], "k": k[:1], "v": given.tensors["v"][:1]}
            last = Problem(given.mechanism, some, given.causal, None if given.mask is None else given.mask[:1])
            exact = formula_of_last(name, last, places)
        torch.testing.assert_close(split[0][:1, :, -3:], exact, rtol=1e-9, atol=1e-10)


def formula_of_last(name: str, given: Problem, places: dict[str, Tensor]) -> Tensor:
    """Return the formula's output for the last queries of the first sequence."""
    q, k, v = (given.tensors[part] for part in "qkv")
    offset, keys = k.shape[2] - q.shape[2], places["keys"][:1]
    mask = torch.ones(1, 1, 1, k.shape[2], dtype=torch.bool) if given.mask is None else given.mask

    def seen(b: int, i: int, j: int) -> bool:
        return bool(mask[b, 0, 0, j]) and (not given.causal or j <= i + offset)

    return attend_by_formula(name, q, k, v, seen, (keys[:, offset:], keys), given.tensors)


def test_blocks_are_as_large_as_the_score_allows_and_cover_every_query_once() -> None:
    q, k, v = torch.randn(3, 2, 4, 300, 16).unbind(0)
    for line, channels in (("dot | near", 1), ("key_forget | softmax", 1), ("additive | near", 16)):
        assert rowwise._count_channels(prepare(q, k, v, line)[0]) == channels, line
    for sizes in ((2, 4, 300, 300, 1), (64, 12, 100, 512, 1), (3, 2, 50, 4000, 64)):
        batch, heads, num_queries, num_keys, channels = sizes
        times = torch.zeros(batch, num_queries)
        for sequences, rows in rowwise._cut(*sizes):
            times[sequences, rows] += 1
            part = times[sequences, rows]
            is_least = part.shape[1] == 1 or part.shape[0] == 1
            assert part.numel() * heads * num_keys * channels <= rowwise.block_size() or is_least
        assert (times == 1).all()


def test_a_batch_that_is_split_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowwise, "block_size", lambda: 2**13)
    for name in ("relative bias", "twin_heads", "key-gated forgetting"):
        given, places = make(name, "left padding", batch=3, heads=2, length=70)
        assert len({batch.start for batch, _ in rowwise._cut(3, 2, 70, 70, 1)}) > 1
        for ours, theirs in zip(solve(given, places, "rowwise"), solve(given, places, "reference"), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_second_derivatives_are_refused_where_blocks_are_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowwise, "block_size", lambda: 64)
    q = torch.randn(1, 2, 20, 4, requires_grad=True)
    with pytest.raises(KernelError, match="second derivatives"):
        torch.autograd.grad(attnlab.attend(q, q, q, "dot | near").sum(), q, create_graph=True)
