"""Weights: known answers, sparsemax and entmax against a solver of their own, masks left out, divisors."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from attnlab.mechanisms import REGISTRY, Dims, Mechanism, Weights
from attnlab.mechanisms.weights import Argmax, Entmax15, Gelu, Identity, Relu, Sigmoid, Softmax, Softmax1, Sparsemax

INF = math.inf
ALL = [cls() for cls in REGISTRY.values() if issubclass(cls, Weights)]
every_stage = pytest.mark.parametrize("stage", [*ALL, Argmax(straight_through=True), Sigmoid(bias=0.5)], ids=str)


def start(stage: Weights, num_heads: int) -> dict[str, Tensor]:
    """Return the initial values of a stage's parameters; all of them are the same for every head."""
    declared = stage.parameters(Dims(num_heads, 4, 4))
    return {name: torch.full((num_heads,), one.low, dtype=torch.float64) for name, one in declared.items()}


def weigh(stage: Weights, row: list[float], n: float | None = None, dtype: torch.dtype = torch.float64) -> list[float]:
    """Weigh one row of scores."""
    scores = torch.tensor(row, dtype=dtype).view(1, 1, 1, -1)
    seen = sum(score != -INF for score in row) if n is None else n
    counts = torch.full((1, 1, 1, 1), seen, dtype=dtype)
    weights: list[float] = stage(scores, counts, start(stage, 1)).flatten().tolist()
    return weights


@pytest.mark.parametrize(
    ("stage", "row", "expected"),
    [
        (Softmax(), [0, math.log(3)], [0.25, 0.75]),
        (Softmax(), [1e4, -1e4], [1, 0]),
        (Softmax1(), [0], [1 / 2]),
        (Softmax1(), [0, 0], [1 / 3, 1 / 3]),
        (Softmax1(), [math.log(2), math.log(5)], [2 / 8, 5 / 8]),
        (Softmax1(), [1e4, 1e4], [1 / 2, 1 / 2]),
        (Softmax1(), [-1e4, -1e4], [0, 0]),
        (Softmax1(), [-INF, -INF], [0, 0]),
        (Relu(), [-2, 0, 3], [0, 0, 3]),
        (Gelu(), [0, 1, -1, -1e4], [0, 0.5 * (1 + math.erf(0.5**0.5)), -0.5 * (1 - math.erf(0.5**0.5)), 0]),
        (Sigmoid(), [0, 0, 0, 0], [1 / 5] * 4),  # σ(−log 4)
        (Sigmoid(), [math.log(2)], [2 / 3]),  # σ(log 2 − log 1)
        (Sigmoid(), [0, 0, -INF], [1 / 3, 1 / 3, 0]),  # what may not be seen does not count in n
        (Sigmoid(bias=0), [0, 1e4, -1e4], [1 / 2, 1, 0]),
        (Sigmoid(bias=math.log(3)), [0], [3 / 4]),
        (Identity(), [-2, 0, 3], [-2, 0, 3]),
        (Argmax(), [1, 3, 2], [0, 1, 0]),
        (Argmax(), [3, 1, 3, 3], [1, 0, 0, 0]),
        (Argmax(), [0, 0, 0], [1, 0, 0]),
        (Argmax(), [-INF, -1, -1], [0, 1, 0]),
        (Argmax(straight_through=True), [2, 3, 3], [0, 1, 0]),
        (Sparsemax(), [5], [1]),
        (Sparsemax(), [0.5, 0.5], [0.5, 0.5]),
        (Sparsemax(), [1, 0.5], [0.75, 0.25]),
        (Sparsemax(), [2, 0.5], [1, 0]),
        (Sparsemax(), [0.5, -INF, 0.1], [0.7, 0, 0.3]),
        (Entmax15(), [5], [1]),
        (Entmax15(), [0.5, 0.5], [0.5, 0.5]),
        (Entmax15(), [3, 1], [1, 0]),
        (Entmax15(), [0, -INF, 0], [0.5, 0, 0.5]),
    ],
)
def test_known_answers(stage: Weights, row: list[float], expected: list[float]) -> None:
    assert weigh(stage, row) == pytest.approx(expected, abs=1e-15)


def bisect(scores: Tensor, mass: Callable[[Tensor], Tensor]) -> Tensor:
    """Find the threshold of each row at which the weights add up to 1, by halving."""
    top = scores.amax(-1, keepdim=True)
    low, high = top - 1, top
    for _ in range(200):
        middle = (low + high) / 2
        is_heavy = mass(scores - middle).sum(-1, keepdim=True) >= 1
        low, high = torch.where(is_heavy, middle, low), torch.where(is_heavy, high, middle)
    weights = mass(scores - low)
    return weights / weights.sum(-1, keepdim=True)


SOLVED: dict[Weights, Callable[[Tensor], Tensor]] = {
    Sparsemax(): lambda s: bisect(s, torch.relu),
    Entmax15(): lambda s: bisect(s / 2, lambda z: torch.relu(z).square()),
}
sparse = pytest.mark.parametrize("stage", SOLVED, ids=str)
ONE = torch.ones((), dtype=torch.float64)


@sparse
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("length", [1, 2, 7, 600])
def test_sparse_weights_are_the_solution(stage: Weights, dtype: torch.dtype, size: float, length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    scores = size * torch.randn(8, length, generator=generator, dtype=torch.float64)
    scores[1::2] = scores[1::2].masked_fill(torch.rand(4, length, generator=generator) < 0.4, -INF)
    scores[:, 0] = scores[:, 0].clamp(min=-size)  # at least one key is seen
    scores[2, length // 2 :] = scores[2, length // 2].clone()  # ties
    scores[3] = scores[3].clamp(max=0)
    scores = scores.to(dtype)
    # fp32 inside: a sum of `length` numbers between −2 and 0, then a rounding to the dtype that came in.
    inside = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    tolerance = 2 * length * inside + torch.finfo(dtype).eps
    weights = stage(scores, ONE, {})
    assert weights.dtype == dtype
    torch.testing.assert_close(weights.double(), SOLVED[stage](scores.double()), rtol=0, atol=tolerance)
    assert (weights[scores == -INF] == 0).all()


@sparse
@given(row=st.lists(st.floats(-1e4, 1e4) | st.sampled_from([0.0, 1.0, -INF]), min_size=1, max_size=30))
@example(row=[0.0] * 30)
@example(row=[1e4, -1e4])
@example(row=[0.0, -1.0, -2.0])
def test_sparse_weights_of_any_row(stage: Weights, row: list[float]) -> None:
    if max(row) == -INF:
        return
    scores = torch.tensor(row, dtype=torch.float64)
    # Scores of 1e4 are themselves known to 1e4·eps only.
    tolerance = 1e5 * torch.finfo(torch.float64).eps
    weights = stage(scores, ONE, {})
    torch.testing.assert_close(weights, SOLVED[stage](scores), rtol=0, atol=tolerance)
    assert weights.sum().item() == pytest.approx(1, abs=tolerance)


@every_stage
def test_gradients_are_right(stage: Weights) -> None:
    generator = torch.Generator().manual_seed(5)
    scores = torch.randn(2, 2, 3, 6, generator=generator, dtype=torch.float64).requires_grad_()
    if isinstance(stage, Argmax):
        # Where there is a gradient at all, it is that of softmax.
        seed = torch.randn(scores.shape, generator=generator, dtype=torch.float64)
        weights = stage(scores, ONE, {})
        assert weights.requires_grad is stage.straight_through
        if stage.straight_through:
            (got,) = torch.autograd.grad(weights, scores, seed)
            (expected,) = torch.autograd.grad(torch.softmax(scores, -1), scores, seed)
            torch.testing.assert_close(got, expected, rtol=0, atol=0)
        return
    assert torch.autograd.gradcheck(lambda s: stage(s, 6 * ONE, start(stage, 2)), (scores,))


@every_stage
def test_a_pair_that_may_not_meet_changes_nothing(stage: Weights) -> None:
    row, n = [0.3, -1.2, 0.9, 0.2], 4.0
    alone = weigh(stage, row, n)
    # A forbidden pair comes in with the score of a visible one.
    scores = torch.tensor([row[0], *row[:2], row[0], *row[2:], row[0]], dtype=torch.float64)
    visible = torch.tensor([False, True, True, False, True, True, False])
    given = {"visible": visible} if "visible" in stage.needs else {}
    together = stage(scores[None, None, None], torch.tensor(n).double(), start(stage, 1), **given).flatten().tolist()
    seen = [together[i] for i in (1, 2, 4, 5)]
    assert seen == pytest.approx(alone, abs=1e-15)
    assert bool(given) is not stage.pointwise


@every_stage
def test_gradients_stay_finite_beside_a_forbidden_pair(stage: Weights) -> None:
    scores = torch.tensor([[0.3, 0.3, 0.9, 0.9], [1e4, -1e4, 1e4, 1e4]]).requires_grad_()
    may_meet = torch.tensor([[True, False, True, True], [True, True, False, False]])
    given = {"visible": may_meet} if "visible" in stage.needs else {}
    weights = stage(scores[None, None], torch.ones(()), start(stage, 1), **given)[0, 0]
    if not weights.requires_grad:
        return
    weights.masked_fill(~may_meet, 0).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert (scores.grad[~may_meet] == 0).all()


@every_stage
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_dtype_that_comes_in_goes_out(stage: Weights, dtype: torch.dtype) -> None:
    scores = torch.zeros(1, 1, 2, 300, dtype=dtype)
    assert stage(scores, torch.full((1, 1, 2, 1), 300, dtype=dtype), start(stage, 1)).dtype == dtype


@pytest.mark.parametrize("stage", [Softmax(), Sparsemax(), Entmax15(), Argmax()], ids=str)
def test_a_row_adds_up_to_one(stage: Weights) -> None:
    scores = torch.randn(4, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(stage(scores, ONE, {}).sum(-1), torch.ones(4, dtype=torch.float64))


def test_a_pointwise_weight_depends_on_its_own_score_alone() -> None:
    for stage in ALL:
        before, after = weigh(stage, [0.3, 0.9], 2)[0], weigh(stage, [0.3, 1.5], 2)[0]
        if stage.pointwise:
            assert before == after
    assert [stage.name for stage in ALL if stage.pointwise] == ["relu", "gelu", "sigmoid", "identity"]


@pytest.mark.parametrize(("divide", "expected"), [("n", [1, 4, 9]), ("sqrt_n", [1, 2, 3])])
def test_the_divisor_is_a_power_of_the_visible_length(divide: str, expected: list[float]) -> None:
    n = torch.tensor([1.0, 4.0, 9.0]).view(1, 1, 3, 1)
    divisor = Mechanism.parse(f"relu(divide={divide})").weights.divisor(n, {})
    assert divisor is not None
    assert divisor.flatten().tolist() == expected


def test_nothing_is_divided_unless_said() -> None:
    assert all(stage.divisor(torch.ones(1), {}) is None for stage in ALL)
    assert not any("exponent" in stage.parameters(Dims(2, 4, 4)) for stage in ALL)


def test_a_learned_divisor_starts_at_the_sigmoid_of_a_half() -> None:
    stage = Identity(divide="learned")
    (declared,) = stage.parameters(Dims(2, 4, 4)).values()
    assert (declared.shape, declared.low, declared.high) == ((2,), 0.5, 0.5)
    n = torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64).view(1, 1, 3, 1)
    divisor = stage.divisor(n, {"exponent": torch.tensor([0.5, 0.0], dtype=torch.float64)})
    assert divisor is not None
    assert divisor.shape == (1, 2, 3, 1)
    power = 1 / (1 + math.exp(-0.5))
    assert divisor[0, 0].flatten().tolist() == pytest.approx([1, 4**power, 9**power])
    assert divisor[0, 1].flatten().tolist() == pytest.approx([1, 2, 3])


def test_a_learned_divisor_can_be_learned() -> None:
    stage, n = Relu(divide="learned"), torch.tensor([1.0, 4.0], dtype=torch.float64).view(1, 1, 2, 1)
    exponent = torch.tensor([0.5, -1.0], dtype=torch.float64).requires_grad_()

    def divisor(m: Tensor) -> Tensor:
        found = stage.divisor(n, {"exponent": m})
        assert found is not None
        return found

    assert torch.autograd.gradcheck(divisor, (exponent,))
