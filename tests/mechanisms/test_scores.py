"""Scores: known answers, one pair at a time, and gradients that stay finite where there are none."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from attnlab.mechanisms import Dims, Mechanism, Score
from attnlab.mechanisms.scores import Additive, unit

from .parameters import draw

Vector = Sequence[float]
ROOT2 = math.sqrt(2)


def score_of(line: str) -> Score:
    return Mechanism.parse(line).score


def pair(line: str, q: Vector, k: Vector, dtype: torch.dtype = torch.float64) -> float:
    """Score one query and one key."""
    score = score_of(line)
    p = draw(score, Dims(1, len(q), len(q)), dtype=dtype)
    as_tensor = [torch.tensor(x, dtype=dtype).view(1, 1, 1, -1) for x in (q, k)]
    return float(score(as_tensor[0], as_tensor[1], p))


@pytest.mark.parametrize(
    ("line", "q", "k", "expected"),
    [
        ("dot", (1, 2), (3, 4), 11 / ROOT2),
        ("dot(scale=1)", (1, 2), (3, 4), 11),
        ("dot(scale=-0.5)", (1, 2), (3, 4), -5.5),
        ("dot(scale=learned)", (1, 2), (3, 4), 11 / ROOT2),  # starts at 1/√d
        ("cosine", (3, 4), (8, 6), 0.96),
        ("cosine", (3, 4), (-3, -4), -1),
        ("cosine", (0, 0), (3, 4), 0),
        ("cosine(scale=5)", (3, 4), (8, 6), 4.8),
        ("cosine(scale=learned)", (3, 4), (8, 6), 0.96 * ROOT2),  # starts at √d
        ("angle", (1, 0), (0, 7), 0),
        ("angle", (1, 0), (1, 1), 0.5),
        ("angle", (1, 0), (1, math.sqrt(3)), 1 / 3),
        ("angle", (2, 0), (5, 0), 1),
        ("angle", (2, 0), (-5, 0), -1),
        ("angle", (0, 0), (5, 0), 0),
        ("euclidean", (1, 2), (4, 6), -25 / ROOT2),
        ("euclidean(squared=false)", (1, 2), (4, 6), -5 / ROOT2),
        ("manhattan", (1, 2), (4, -2), -7 / ROOT2),
        ("minkowski(p=1)", (1, 2), (4, -2), -7),
        ("minkowski(p=2)", (1, 2), (4, -2), -5),
        ("minkowski(p=3)", (1, 2), (4, -2), -(91 ** (1 / 3))),
        ("minkowski(p=learned)", (1, 2), (4, -2), -5),  # starts at p = 2
        ("chebyshev", (1, 2), (4, -2), -4),
        *[(line, (1, 2), (1, 2), 0) for line in ("euclidean", "manhattan", "minkowski(p=3)", "chebyshev")],
    ],
)
def test_known_answers(line: str, q: Vector, k: Vector, expected: float) -> None:
    assert pair(line, q, k) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def norm(power: float) -> Callable[[Vector, Vector], float]:
    return lambda q, k: sum(abs(a - b) ** power for a, b in zip(q, k, strict=True)) ** (1 / power)


def dot(q: Vector, k: Vector) -> float:
    return math.sumprod(q, k) if hasattr(math, "sumprod") else sum(a * b for a, b in zip(q, k, strict=True))


def cosine(q: Vector, k: Vector) -> float:
    return dot(q, k) / (math.hypot(*q) * math.hypot(*k))


# The definitions of the design, one number at a time.
DEFINITIONS: dict[str, Callable[[Vector, Vector], float]] = {
    "dot": lambda q, k: dot(q, k) / math.sqrt(len(q)),
    "cosine": cosine,
    "angle": lambda q, k: 1 - math.acos(cosine(q, k)) / math.pi * 2,
    "euclidean": lambda q, k: -(norm(2)(q, k) ** 2) / math.sqrt(len(q)),
    "euclidean(squared=false)": lambda q, k: -norm(2)(q, k) / math.sqrt(len(q)),
    "manhattan": lambda q, k: -norm(1)(q, k) / math.sqrt(len(q)),
    "minkowski(p=1.5)": lambda q, k: -norm(1.5)(q, k),
    "minkowski(p=learned)": lambda q, k: -norm(2)(q, k),
    "chebyshev": lambda q, k: -max(abs(a - b) for a, b in zip(q, k, strict=True)),
}
LINES = [*DEFINITIONS, "dot(scale=learned)", "cosine(scale=learned)", "additive", "additive(hidden=3)"]


def generic(dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw queries [2 3 4 5] and keys [2 3 6 5]."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    k = torch.randn(2, 3, 6, 5, generator=generator, dtype=torch.float64)
    return q.to(dtype), k.to(dtype)


@pytest.mark.parametrize("line", DEFINITIONS)
def test_every_pair_follows_the_definition(line: str) -> None:
    q, k = generic()
    score = score_of(line)
    got = score(q, k, draw(score, Dims(3, 5, 5)))
    expected = [
        [[[DEFINITIONS[line](a, b) for b in keys] for a in queries] for queries, keys in zip(qs, ks, strict=True)]
        for qs, ks in zip(q.tolist(), k.tolist(), strict=True)
    ]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-13)


def test_additive_equals_its_unfactored_form() -> None:
    q, k = generic()
    score = Additive(hidden=7)
    p = draw(score, Dims(3, 5, 5), seed=1)
    joint = torch.cat([p["query"], p["key"]], -1)  # W₁ = [W_q W_k], [h c 2d]
    pairs = torch.cat([q[..., :, None, :].expand(2, 3, 4, 6, 5), k[..., None, :, :].expand(2, 3, 4, 6, 5)], -1)
    unfactored = torch.einsum("hc,bhqkc->bhqk", p["out"], torch.tanh(torch.einsum("hcx,bhqkx->bhqkc", joint, pairs)))
    torch.testing.assert_close(score(q, k, p), unfactored, rtol=1e-12, atol=1e-13)


def test_additive_is_as_wide_as_the_head_unless_said() -> None:
    assert Additive().parameters(Dims(3, 5, 5))["query"].shape == (3, 5, 5)
    assert Additive(hidden=7).parameters(Dims(3, 5, 5))["query"].shape == (3, 7, 5)


@pytest.mark.parametrize("line", LINES)
def test_a_block_of_pairs_can_be_scored_alone(line: str) -> None:
    q, k = generic()
    score = score_of(line)
    p = draw(score, Dims(3, 5, 5))
    block = score(q[:, :, 1:3], k[:, :, 2:5], p)
    torch.testing.assert_close(block, score(q, k, p)[:, :, 1:3, 2:5], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("line", LINES)
def test_gradients_are_right_at_generic_points(line: str) -> None:
    q, k = (x[:1, :, :3].requires_grad_() for x in generic(seed=3))
    score = score_of(line)
    p = {name: value.requires_grad_() for name, value in draw(score, Dims(3, 5, 5)).items()}

    def call(q: Tensor, k: Tensor, *values: Tensor) -> Tensor:
        return score(q, k, dict(zip(p, values, strict=True)))

    assert torch.autograd.gradcheck(call, (q, k, *p.values()))


SPECIAL: dict[str, tuple[Vector, Vector]] = {
    "equal": ((1, 2, 3), (1, 2, 3)),
    "parallel": ((1, 2, 3), (2, 4, 6)),
    "opposite": ((1, 2, 3), (-1, -2, -3)),
    "along an axis": ((1, 0, 0), (3, 0, 0)),
    "one zero": ((0, 0, 0), (1, 2, 3)),
    "both zero": ((0, 0, 0), (0, 0, 0)),
    "one coordinate equal": ((1, 2, 3), (1, 5, 4)),
    "tied coordinates": ((1, 2, 3), (2, 1, 4)),
    "nearly equal": ((1, 2, 3), (1, 2, 3.0000002)),
    "large": ((1e4, -1e4, 1e4), (-1e4, 1e4, -1e4)),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("where", SPECIAL)
@pytest.mark.parametrize("line", LINES)
def test_gradients_are_finite_where_there_are_none(line: str, where: str, dtype: torch.dtype) -> None:
    score = score_of(line)
    p = {name: value.requires_grad_() for name, value in draw(score, Dims(1, 3, 3), dtype=dtype).items()}
    q, k = (torch.tensor(x, dtype=dtype).view(1, 1, 1, 3).requires_grad_() for x in SPECIAL[where])
    scores = score(q, k, p)
    scores.sum().backward()
    assert scores.isfinite().all()
    for tensor in (q, k, *p.values()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("line", ["euclidean(squared=false)", "manhattan", "minkowski(p=1.5)", "chebyshev", "angle"])
def test_equal_vectors_do_not_move(line: str) -> None:
    q, k = (torch.ones(1, 1, 1, 1, dtype=torch.float64).requires_grad_() for _ in range(2))
    score_of(line)(q, k, {}).sum().backward()
    assert q.grad is not None
    assert q.grad.item() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_scores_stay_in_their_range(dtype: torch.dtype) -> None:
    q, k = generic(dtype)
    k = torch.cat([k, q, -q, 3 * q, torch.zeros_like(q)], 2)
    eps = torch.finfo(dtype).eps
    assert score_of("cosine")(q, k, {}).abs().max() <= 1 + 2 * eps
    assert score_of("angle")(q, k, {}).abs().max() <= 1
    for line in ("euclidean", "euclidean(squared=false)", "manhattan", "minkowski(p=3)", "chebyshev"):
        assert score_of(line)(q, k, {}).max() <= 0


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(torch.float32, 1e-20), (torch.float32, 1e-15), (torch.float32, 1e15), (torch.bfloat16, 1e-15),
     (torch.float16, 1e-3), (torch.float16, 1e3), (torch.float64, 1e-150)],
    ids=str,
)  # fmt: skip
def test_a_unit_vector_is_one_whatever_its_length_was(dtype: torch.dtype, size: float) -> None:
    x = (torch.tensor([3.0, 4.0, 0.0], dtype=torch.float64) * size).to(dtype).requires_grad_()
    y = unit(x)
    y.backward(torch.tensor([4.0, -3.0, 1.0], dtype=dtype))
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), torch.tensor([0.6, 0.8, 0], dtype=torch.float64), rtol=0, atol=tolerance)
    assert x.grad is not None
    # What turns x counts in proportion to 1/‖x‖; this gradient has no part along x.
    expected = torch.tensor([0.8, -0.6, 0.2], dtype=torch.float64)
    torch.testing.assert_close(x.grad.double() * size, expected, rtol=2 * tolerance, atol=2 * tolerance)


@pytest.mark.parametrize("p", [1, 1.5, 2, 30, 1000])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_high_power_neither_overflows_nor_vanishes(p: float, size: float) -> None:
    q, k = torch.tensor([3.0, 4.0]) * size, torch.zeros(2)
    q = q.view(1, 1, 1, 2).requires_grad_()
    score = score_of(f"minkowski(p={p})")(q, k.view(1, 1, 1, 2), {})
    expected = -4 * size * (1 + 0.75**p) ** (1 / p)
    assert score.item() == pytest.approx(expected, rel=1e-5)
    score.backward()
    assert q.grad is not None
    # ‖x‖_p grows in proportion to x, so x·∇‖x‖ is ‖x‖ itself (Euler).
    assert (q.grad * q.detach()).sum().item() == pytest.approx(expected, rel=1e-5)


def test_a_learned_power_is_never_below_one() -> None:
    score = score_of("minkowski(p=learned)")
    p = {"power": torch.tensor([-100.0])}
    q, k = torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 1, 2)
    assert score(q, k, p).item() == pytest.approx(-2)


def test_learned_numbers_are_one_a_head() -> None:
    q, k = (x.expand(1, 2, 1, 4) for x in (torch.full((1, 1, 1, 4), 1.0), torch.full((1, 1, 1, 4), 3.0)))
    assert score_of("dot(scale=learned)")(q, k, {"scale": torch.tensor([1.0, 2.0])}).flatten().tolist() == [
        12,
        24,
    ]
    assert score_of("cosine(scale=learned)")(q, k, {"scale": torch.tensor([1.0, 2.0])}).flatten().tolist() == [1, 2]
    power = torch.tensor([-100.0, math.log(math.e - 1)])
    got = score_of("minkowski(p=learned)")(q, k, {"power": power}).flatten().tolist()
    assert got == pytest.approx([-8, -4])
