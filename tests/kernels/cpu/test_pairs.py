"""Scores of a tile, and their gradients, are those of the score stage."""

import pytest
import torch
from torch import Tensor

from attnlab.kernels.cpu.pairs import (
    MANY_QUERIES,
    AnglePairs,
    CompiledPairs,
    DotPairs,
    KeySums,
    add_product,
    count_lanes,
    groups,
    last_seen,
)
from attnlab.kernels.tiles import Tiling
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.scores import Score

BATCH, HEADS, LENGTH, DIM = 2, 3, 9, 5
LINES = ("manhattan", "chebyshev", "minkowski(p=3)", "euclidean(squared=false)", "additive")


def make(line: str) -> tuple[Score, dict[str, Tensor], Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    mechanism = Mechanism.parse(f"{line} | softmax")
    declared = mechanism.parameters(HEADS, DIM)
    learned = {name: torch.randn(p.shape, generator=draw, dtype=torch.float64) for name, p in declared.items()}
    q, k = torch.randn(2, BATCH, HEADS, LENGTH, DIM, generator=draw, dtype=torch.float64)
    return mechanism.score, dict(mechanism.params_of(mechanism.score, learned)), q, k


def run(pairs: DotPairs | CompiledPairs, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores, and the gradients of q and k of their sum with these weights."""
    scores = torch.empty(BATCH, HEADS, LENGTH, LENGTH, dtype=torch.float64)
    pairs.start()
    for tile in Tiling(BATCH, HEADS, LENGTH, LENGTH, causal=False):
        part = groups(scores, tile)
        pairs.scores(tile, part, 0.0)
        kept = part.clone() if pairs.needs_scores else None
        pairs.accumulate(tile, groups(weight, tile).clone(), kept)
    dq, dk, _ = pairs.gradients()
    return scores, dq, dk


def check(found: tuple[Tensor, Tensor, Tensor], score: Score, p: dict[str, Tensor], q: Tensor, k: Tensor) -> None:
    q, k = q.clone().requires_grad_(), k.clone().requires_grad_()
    scores = score(q, k, p)
    gradients = torch.autograd.grad(scores, (q, k), WEIGHT)
    for ours, theirs in zip(found, (scores, *gradients), strict=True):
        torch.testing.assert_close(ours, theirs)


WEIGHT = torch.randn(BATCH, HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("line", [line for line in LINES if line != "additive"])
def test_compiled_distances_and_their_gradients_are_the_scores(line: str) -> None:
    score, p, q, k = make(line)
    assert score.form is not None
    features = score.features(q, k, p)
    check(run(CompiledPairs(score.form, *features, None), WEIGHT), score, p, q, k)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_channels_are_padded_to_one_register(dtype: torch.dtype) -> None:
    lanes = count_lanes(dtype)
    assert lanes * dtype.itemsize in (16, 32, 64)
    for width in (1, lanes, lanes + 1):
        q = torch.zeros(1, 1, 3, width, dtype=dtype)
        pairs = CompiledPairs("manhattan", q, q, q.new_zeros(1, 1), None)
        assert pairs.channels == (lanes if width <= lanes else 2 * lanes)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("num_threads", [2, 3])
def test_threads_do_not_change_a_bit(line: str, num_threads: int) -> None:
    score, p, q, k = make(line)
    assert score.form is not None
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, num_threads):
            torch.set_num_threads(threads)
            results.append(run(CompiledPairs(score.form, *score.features(q, k, p), None), WEIGHT))
    finally:
        torch.set_num_threads(before)
    for alone, together in zip(*results, strict=True):
        assert torch.equal(alone, together)


def test_additive_scores_of_features_are_the_stages() -> None:
    score, p, q, k = make("additive")
    scores, _, _ = run(CompiledPairs("additive", *score.features(q, k, p), None), WEIGHT)
    torch.testing.assert_close(scores, score(q, k, p))


def test_dot_products_and_angles() -> None:
    _, _, q, k = make("dot")
    scores, dq, dk = run(DotPairs(q, k, torch.float64), WEIGHT)
    torch.testing.assert_close(scores, q @ k.mT)
    torch.testing.assert_close(dq, WEIGHT @ k)
    torch.testing.assert_close(dk, WEIGHT.mT @ q)
    q, k = (torch.nn.functional.normalize(x, dim=-1) for x in (q, k))
    scores, _, _ = run(AnglePairs(q, k, torch.float64), WEIGHT)
    torch.testing.assert_close(scores, 1 - 2 * torch.arccos(q @ k.mT) / torch.pi)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_finite_is_noticed(value: float) -> None:
    _, _, q, k = make("manhattan")
    for pairs in (DotPairs(q, k, torch.float64), CompiledPairs("manhattan", q, k, q.new_zeros(HEADS, 1), None)):
        assert pairs.is_finite()
    k[0, 0, 3, 1] = value
    for pairs in (DotPairs(q, k, torch.float64), CompiledPairs("manhattan", q, k, q.new_zeros(HEADS, 1), None)):
        assert not pairs.is_finite()


def test_the_first_row_of_a_tile_sees_keys_up_to_its_own() -> None:
    first, second = Tiling(1, 1, 200, 210, causal=True)
    assert [last_seen(tile, 10) for tile in (first, second)] == [10, 138]
    assert last_seen(first, None) == first.horizon - 1


def test_products_are_added_in_the_precision_of_the_sum() -> None:
    left, right = torch.ones(1, 2, 3, dtype=torch.bfloat16), torch.ones(1, 3, 2, dtype=torch.bfloat16)
    for dtype in (torch.float32, torch.bfloat16):
        total = torch.ones(1, 2, 2, dtype=dtype)
        add_product(total, left, right)
        assert total.dtype == dtype
        assert (total == 4).all()


@pytest.mark.parametrize("num_queries", [5, MANY_QUERIES + 1])
@pytest.mark.parametrize("causal", [False, True])
def test_sums_over_queries_are_one_product(num_queries: int, causal: bool) -> None:
    draw = torch.Generator().manual_seed(0)
    w = torch.randn(2, 3, num_queries, num_queries, generator=draw, dtype=torch.float64)
    w = w.tril() if causal else w
    x = torch.randn(2, 3, num_queries, 4, generator=draw, dtype=torch.float64)
    sums = KeySums(x, num_queries, torch.float64)
    for tile in Tiling(2, 3, num_queries, num_queries, causal):
        rows = slice(tile.start, tile.stop)
        sums.add(tile, groups(w, tile)[:, rows, : tile.horizon], groups(x, tile)[:, rows])
    torch.testing.assert_close(sums.compute(), w.mT @ x)
