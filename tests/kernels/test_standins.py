"""What a weights stage sees at forbidden pairs: a stand-in, at which no arithmetic breaks and that nothing counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from attnlab import attend
from attnlab.errors import MechanismError
from attnlab.kernels.standins import fill_standins
from attnlab.mechanisms import Dims, Parameter, Params, Weights, masked_softmax, stage

pytestmark = pytest.mark.usefixtures("own_stages")

Arithmetic = Callable[[Tensor, Tensor, Tensor], Tensor]

ARITHMETIC: dict[str, Arithmetic] = {
    "times log n, 0 for one key": lambda s, n, t: s * n.log(),
    "times a learned number of either sign": lambda s, n, t: s * t,
    "squared": lambda s, n, t: s.square(),
    "squared and turned over": lambda s, n, t: -(s * t).square(),
    "shifted by a learned number": lambda s, n, t: s + 1e3 * t,
    "the logarithm of a square": lambda s, n, t: (s.square() + 1e-3).log() * t,
    "an inverse": lambda s, n, t: t / (2 + s.tanh()),
    "an exponential": lambda s, n, t: (s.clamp(max=30) * t).exp(),
    "a magnitude": lambda s, n, t: s.abs(),
}
"""What a stage may do with scores, given n and a learned number per head of either sign."""

ENDS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "softmax": masked_softmax,
    "as it is": lambda s, visible: s,
    "less the mean": lambda s, visible: s - (s * visible).sum(-1, keepdim=True) / visible.sum(-1, keepdim=True),
    "by the sum of squares": lambda s, visible: s / ((s.square() * visible).sum(-1, keepdim=True) + 1),
}
"""What may come after that."""


def make_stage(arithmetic: Arithmetic, end: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Register a stage 'mine'."""

    @stage("mine")
    @dataclass(frozen=True)
    class Mine(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"t": Parameter((dims.num_heads,), -1.0, 1.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return end(arithmetic(scores, n, p["t"][:, None, None]), visible)


def row_by_row(
    q: Tensor, k: Tensor, v: Tensor, t: Tensor, pairs: Tensor, arithmetic: Arithmetic,
    end: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:  # fmt: skip
    """Attend with forbidden keys taken out, so that nobody could see them."""
    out = torch.zeros_like(q)
    for b, i in [(b, i) for b in range(q.shape[0]) for i in range(q.shape[2])]:
        chosen = pairs[b, 0, i].nonzero()[:, 0]
        if len(chosen):
            s = q[b, :, i : i + 1] @ k[b][:, chosen].mT / q.shape[-1] ** 0.5
            n = torch.tensor(float(len(chosen)), dtype=s.dtype)
            w = end(arithmetic(s, n, t[:, None, None]), torch.ones_like(s, dtype=torch.bool))
            out[b, :, i : i + 1] = w @ v[b][:, chosen]
    return out


def gradients(out: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of squares; zeros where a stage does not use what it learns."""
    return torch.autograd.grad(out.square().sum(), leaves, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("arithmetic", ARITHMETIC)
def test_forbidden_pairs_take_no_part_in_whatever_a_stage_computes(arithmetic: str, end: str) -> None:
    make_stage(ARITHMETIC[arithmetic], ENDS[end])
    draw = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 11, 4, generator=draw, dtype=torch.float64).unbind(0)
    # What is hidden may be of any size.
    real = torch.ones(2, 1, 1, 11, dtype=torch.bool)
    real[1, ..., [0, 4, 10]] = False
    k = torch.where(real.mT, k, 1e4 * k)
    t = torch.tensor([-0.7, 0.4], dtype=torch.float64)
    leaves = [x.clone().requires_grad_() for x in (q, k, v, t)]
    pairs = real & torch.ones(11, 11, dtype=torch.bool).tril()
    exact = row_by_row(leaves[0], leaves[1], leaves[2], leaves[3], pairs, ARITHMETIC[arithmetic], ENDS[end])
    truth = [exact, *gradients(exact, leaves)]
    for kernel in ("rowwise", "reference"):
        out = attend(
            leaves[0],
            leaves[1],
            leaves[2],
            "dot | mine",
            causal=True,
            mask=real,
            kernel=kernel,
            parameters={"mine_t": leaves[3]},
        )
        found = [out, *gradients(out, leaves)]
        for ours, theirs in zip(found, truth, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
        assert (found[2][1].mT[..., [0, 4, 10]] == 0).all(), "a gradient reaches what is hidden"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_no_arithmetic_breaks_in_low_precision(dtype: torch.dtype) -> None:
    for arithmetic in ARITHMETIC.values():
        make_stage(arithmetic, masked_softmax)
        q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0)).to(dtype).unbind(0)
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        out = attend(leaves[0], leaves[1], leaves[2], "dot | mine", causal=True)
        assert all(x.isfinite().all() for x in (out, *torch.autograd.grad(out.sum(), leaves)))


def test_a_stage_that_counts_forbidden_pairs_is_refused_with_what_to_write() -> None:
    @stage("careless")
    @dataclass(frozen=True)
    class Careless(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))

    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
    with pytest.raises(MechanismError, match=r"'careless' depend on masked pairs.*masked_softmax"):
        attend(q, k, v, "dot | careless", causal=True)
    attend(q, k, v, "dot | careless")  # nothing is forbidden here


def test_weights_that_are_not_finite_are_not_said_to_depend_on_masked_pairs() -> None:
    @stage("logarithmic")
    @dataclass(frozen=True)
    class Logarithmic(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.log().softmax(-1)

    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
    with pytest.raises(MechanismError, match="'logarithmic' are not finite for finite scores"):
        attend(q, k, v, "dot | logarithmic", causal=True)


@pytest.mark.parametrize("kernel", ["reference", "rowwise"])
def test_a_plain_softmax_of_anything_leaves_forbidden_pairs_out(kernel: str) -> None:
    @stage("plain")
    @dataclass(frozen=True)
    class Plain(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.softmax(scores * n.log(), -1)  # 0 times the scores of a query that sees one key

    @stage("asking")
    @dataclass(frozen=True)
    class Asking(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            return masked_softmax(scores * n.log(), visible)

    draw = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 11, 4, generator=draw, dtype=torch.float64).unbind(0)
    real = torch.ones(2, 1, 1, 11, dtype=torch.bool)
    real[1, ..., :3] = False  # padding on the left: the first rows of the second sequence see nothing
    found = []
    for line in ("dot | plain", "dot | asking"):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        out = attend(leaves[0], leaves[1], leaves[2], line, causal=True, mask=real, kernel=kernel)
        found.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_a_stage_that_does_not_normalise_need_not_say_so() -> None:
    @stage("cubed")
    @dataclass(frozen=True)
    class Cubed(Weights):
        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores**3

    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).unbind(0)
    out = attend(q, k, v, "dot | cubed", causal=True)
    torch.testing.assert_close(out, ((q @ k.mT / 2) ** 3).tril() @ v)


def test_a_stand_in_is_the_first_visible_score_of_its_row() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    visible = torch.tensor([[False, True, True], [True, False, False]])
    filled = fill_standins(scores, visible, None)
    assert filled.tolist() == [[2, 2, 3], [4, 4, 4]]
    assert fill_standins(scores, torch.zeros(2, 3).bool(), torch.ones(2, 1).bool()).unique().tolist() == [0.5]
    (grad,) = torch.autograd.grad(filled.sum(), scores)
    assert torch.equal(grad, visible.float())
