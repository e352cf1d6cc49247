"""Products by tiles are those of factors rounded to bf16, to fp32's own rounding, at any size, stride and thread count.

Bounds: products of two bf16 are exact in fp32, so each output errs by at most k roundings of partial sums of Σ|a||b|,
one more for what it starts from, and by what tiles flush to zero (2⁻¹²⁶ a term).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnlab.errors import KernelError, ShapeError
from attnlab.kernels import amx, products
from attnlab.kernels.products import linear, product

pytestmark = pytest.mark.skipif(not amx.has_tiles()[0], reason=amx.has_tiles()[1])

LAYOUTS = ("rows", "columns", "row slices", "column slices", "gaps")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def laid(x: Tensor, layout: str) -> Tensor:
    """Return the same matrix with other strides."""
    m, n = x.shape
    made = {
        "rows": lambda: torch.empty(m, n),
        "columns": lambda: torch.empty(n, m).t(),
        "row slices": lambda: torch.full((m, n + 5), torch.nan)[:, 3 : n + 3],
        "column slices": lambda: torch.full((n, m + 5), torch.nan)[:, 3 : m + 3].t(),
        "gaps": lambda: torch.full((m, 2 * n), torch.nan)[:, ::2],
    }[layout]().to(x.dtype)
    return made.copy_(x)


def exact(x: Tensor) -> Tensor:
    """Return a factor as it is multiplied, in fp64."""
    return x.bfloat16().double()


def bound(a: Tensor, b: Tensor, start: Tensor | float = 0.0) -> Tensor:
    """Return how far a product may be from that of `exact` factors."""
    k = a.shape[1]
    start = torch.as_tensor(start).abs().double()
    return (k + 1) * 2.0**-24 * 1.01 * (exact(a).abs() @ exact(b).abs() + start) + (k + 1) * 2.0**-126


def assert_right(out: Tensor, a: Tensor, b: Tensor, start: Tensor | float = 0.0) -> None:
    assert out.dtype == torch.float32
    wanted = exact(a) @ exact(b) + start
    assert bool(((out.double() - wanted).abs() <= bound(a, b, start)).all())


@contextmanager
def threads(num: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(num)
    yield
    torch.set_num_threads(before)


sizes = st.one_of(st.integers(0, 70), st.sampled_from([127, 128, 129, 255, 257, 300]))


@given(
    m=sizes, k=sizes, n=sizes, layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 2), low=st.tuples(*[st.booleans()] * 2)
)
def test_any_size_and_stride(m: int, k: int, n: int, layouts: tuple[str, str], low: tuple[bool, bool]) -> None:
    a, b = (
        laid(drawn(*shape, seed=seed).to(torch.bfloat16 if is_low else torch.float32), layout)
        for seed, (shape, layout, is_low) in enumerate(zip(((m, k), (k, n)), layouts, low, strict=True))
    )
    assert_right(product(a, b), a, b)


@given(m=sizes, k=sizes, n=sizes, layout=st.sampled_from(LAYOUTS[:4]))
def test_accumulating_adds_to_what_is_there(m: int, k: int, n: int, layout: str) -> None:
    a, b, start = drawn(m, k), drawn(k, n, seed=1), drawn(m, n, seed=2)
    out = laid(start, layout)
    assert product(a, b, out, accumulate=True) is out
    assert_right(out, a, b, start)


@pytest.mark.parametrize(("m", "k", "n"), [(65, 5000, 33), (1000, 40, 1000), (300, 1500, 1700), (40, 1030, 3000)])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), list(itertools.product([False, True], repeat=2)))
def test_sizes_of_many_blocks(m: int, k: int, n: int, transpose_a: bool, transpose_b: bool) -> None:
    a, b = drawn(m, k), drawn(k, n, seed=1)
    given_a, given_b = (a.t().contiguous() if transpose_a else a), (b.t().contiguous() if transpose_b else b)
    out = product(given_a, given_b, transpose_a=transpose_a, transpose_b=transpose_b)
    assert_right(out, a, b)


def test_out_is_written_nowhere_else() -> None:
    around = torch.full((50, 60), 7.0)
    product(drawn(33, 20), drawn(20, 41), around[3:36, 5:46])
    inside = torch.zeros(50, 60, dtype=torch.bool)
    inside[3:36, 5:46] = True
    assert bool((around[~inside] == 7).all())


def test_a_sum_of_nothing_is_zero_or_what_was_there() -> None:
    assert torch.equal(product(torch.empty(3, 0), torch.empty(0, 5)), torch.zeros(3, 5))
    start = drawn(3, 5)
    assert torch.equal(product(torch.empty(3, 0), torch.empty(0, 5), start.clone(), accumulate=True), start)
    assert product(torch.empty(0, 4), torch.empty(4, 5)).shape == (0, 5)


def test_ties_go_to_even_and_no_nan_or_infinity_is_lost() -> None:
    halves = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-8), 3.4e38, torch.inf, -torch.inf, torch.nan, 1e-20])
    for factors in ((halves[:, None], torch.ones(1, 40)), (halves[:, None].t().contiguous().t(), torch.ones(1, 40))):
        out = product(*factors)
        wanted = halves.bfloat16().float()[:, None].expand(8, 40)
        assert torch.equal(out.nan_to_num(nan=5.0), wanted.nan_to_num(nan=5.0))
        assert torch.equal(out.isnan(), wanted.isnan())


def test_one_nan_touches_its_own_row_and_column_alone() -> None:
    a, b = drawn(37, 45), drawn(45, 50, seed=1)
    a[7, 3], b[4, 11] = torch.nan, torch.inf
    out = product(a, b)
    spoilt = torch.zeros(37, 50, dtype=torch.bool)
    spoilt[7], spoilt[:, 11] = True, True
    assert torch.equal(~out.isfinite(), spoilt)


@pytest.mark.parametrize(("m", "k", "n"), [(3000, 300, 200), (200, 300, 3000), (500, 5000, 100)])
def test_threads_and_repetition_change_no_bit(m: int, k: int, n: int) -> None:
    a, b = drawn(m, k), drawn(k, n, seed=1)
    found = []
    for num in (1, 2, 2, 3):
        with threads(num):
            found.append(product(a, b))
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_a_row_does_not_depend_on_the_other_rows() -> None:
    a, b = drawn(300, 700), drawn(700, 90, seed=1)
    assert torch.equal(product(a, b)[100:117], product(a[100:117], b))


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize(
    ("shape", "n"), [((7, 33), 50), ((2, 3, 64), 1), ((1, 64), 64), ((0, 40), 20), ((3000, 130), 200)]
)
def test_gradients_are_those_of_rounded_factors(
    shape: tuple[int, ...], n: int, is_transposed: bool, num_threads: int
) -> None:
    k = shape[-1]
    x, bias, slope = drawn(*shape), drawn(n, seed=2), drawn(*shape[:-1], n, seed=3)
    weight = drawn(k, n, seed=1) if is_transposed else drawn(n, k, seed=1)
    leaves = [t.requires_grad_() for t in (x, weight, bias)]
    with threads(num_threads):
        y = linear(*leaves, is_transposed=is_transposed)
        grads = torch.autograd.grad(y, leaves, slope)
    rows, slopes = x.detach().reshape(-1, k), slope.reshape(-1, n)
    matrix = (weight.t() if is_transposed else weight).detach()
    assert_right(y.detach().reshape(-1, n), rows, matrix.t(), bias.detach())
    assert_right(grads[0].reshape(-1, k), slopes, matrix)
    assert_right(grads[1].t() if is_transposed else grads[1], slopes.t(), rows)
    summed = slopes.double().sum(0)
    assert bool(((grads[2] - summed).abs() <= len(slopes) * 2.0**-24 * 1.01 * slopes.abs().double().sum(0)).all())


@pytest.mark.parametrize("needs", list(itertools.product([False, True], repeat=3)))
def test_only_what_needs_a_gradient_gets_one(needs: tuple[bool, ...]) -> None:
    leaves = [drawn(9, 20), drawn(30, 20), drawn(30)]
    for leaf, needed in zip(leaves, needs, strict=True):
        leaf.requires_grad_(needed)
    y = linear(*leaves)
    assert y.requires_grad == any(needs)
    if any(needs):
        y.sum().backward()
    assert [leaf.grad is not None for leaf in leaves] == list(needs)


def test_nothing_but_the_input_and_the_weight_is_kept() -> None:
    x, weight, bias = (t.requires_grad_() for t in (drawn(9, 20), drawn(30, 20), drawn(30)))
    kept: list[int] = []

    def keep(t: Tensor) -> Tensor:
        kept.append(t.data_ptr())
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        linear(x, weight, bias)
    assert kept == [x.data_ptr(), weight.data_ptr()]


def test_without_gradients_and_without_a_bias() -> None:
    x, weight = drawn(4, 5, 64), drawn(30, 64, seed=1)
    with torch.no_grad():
        assert_right(linear(x, weight).reshape(20, 30), x.reshape(20, 64), weight.t())


def test_what_cannot_be_multiplied_is_refused_in_words() -> None:
    with pytest.raises(ShapeError, match=r"needs \[m, k\] and \[k, n\], not \[3, 4\] and \[5, 6\]"):
        product(drawn(3, 4), drawn(5, 6))
    with pytest.raises(KernelError, match=r"second factor is torch.float64"):
        product(drawn(3, 4), drawn(4, 6).double())
    with pytest.raises(KernelError, match="no 'out' was given"):
        product(drawn(3, 4), drawn(4, 6), accumulate=True)
    with pytest.raises(ShapeError, match=r"needed is torch.float32 \[3, 6\]"):
        product(drawn(3, 4), drawn(4, 6), drawn(6, 3))
    with pytest.raises(ShapeError, match="strides"):
        product(drawn(3, 4), drawn(4, 6), torch.empty(6, 12)[::2, ::2])
    with pytest.raises(ShapeError, match="expanded"):
        product(drawn(3, 4), drawn(4, 6), torch.empty(1, 6).expand(3, 6))
    with pytest.raises(ShapeError, match="needs a width of 20"):
        linear(drawn(3, 4), drawn(30, 20))


def test_without_tiles_a_product_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amx, "has_tiles", lambda: (False, "no bf16 tiles: the processor has no amx_tile"))
    with pytest.raises(KernelError, match="the processor has no amx_tile; use torch's own product"):
        products.product(drawn(3, 4), drawn(4, 6))
