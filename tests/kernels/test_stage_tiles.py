"""Stages that declare pointwise weights, features or a bias of positions: every kernel agrees with the reference."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import attnlab
from attnlab.errors import KernelError, MechanismError, ShapeError
from attnlab.mechanisms import Dims, Parameter, Params, Positions, Score, Weights, argument, stage

from .problems import SITUATIONS, assert_as_exact, problem

pytestmark = pytest.mark.usefixtures("declared")


@pytest.fixture
def declared(own_stages: None) -> None:
    register()


def register() -> None:
    @stage("softplus")
    @dataclass(frozen=True)
    class SoftPlus(Weights):
        """log(1 + e^{β s}/n), β per head."""

        pointwise = True

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {**super().parameters(dims), "beta": Parameter((dims.num_heads,), 0.5, 1.5)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return functional.softplus(scores * p["beta"][:, None, None] - n.log())

    @stage("retained")
    @dataclass(frozen=True)
    class Retained(Weights):
        """s·e^{−β|i−j|}, β per head."""

        pointwise = True
        keeps_zero = True

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {**super().parameters(dims), "beta": Parameter((dims.num_heads,), 0.01, 0.2)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return scores * torch.exp(-p["beta"][:, None, None] * positions.distances.abs())

    @stage("projected")
    @dataclass(frozen=True)
    class Projected(Score):
        """φ(W q)·φ(W k) with φ = elu + 1 and fewer features than channels."""

        form = "features"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"w": Parameter((dims.num_heads, dims.head_dim, dims.head_dim // 2), -0.5, 0.5)}

        def query_features(self, q: Tensor, p: Params) -> Tensor:
            return functional.elu(q @ p["w"]) + 1

        def key_features(self, k: Tensor, p: Params) -> Tensor:
            return functional.elu(k @ p["w"]) + 1

        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return self.query_features(q, p) @ self.key_features(k, p).mT

    @stage("shifted")
    @dataclass(frozen=True)
    class Relative(Score):
        """q·k/√d + b_h(i−j), clipped at `reach`."""

        form = "features"
        bias_of = "distances"

        reach: int = argument(6, at_least=1)

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"bias": Parameter((dims.num_heads, 2 * self.reach + 1), -1.0, 1.0)}

        def query_features(self, q: Tensor, p: Params) -> Tensor:
            return q * float(q.shape[-1] ** -0.5)

        def position_bias(self, positions: Positions, p: Params) -> Tensor:
            index = positions.distances.clamp(-self.reach, self.reach) + self.reach
            return p["bias"][:, index[:, 0]].transpose(0, 1)

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return torch.add(self.query_features(q, p) @ k.mT, self.position_bias(positions, p))

    @stage("fire")
    @dataclass(frozen=True)
    class Fire(Score):
        """q·k − c_h·log(1+|i−j|)/log(2+i)."""

        form = "features"
        bias_of = "positions"

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"c": Parameter((dims.num_heads,), 0.5, 1.0)}

        def position_bias(self, positions: Positions, p: Params) -> Tensor:
            distance = torch.log1p(positions.distances.abs().to(p["c"].dtype))
            return -p["c"][:, None, None] * distance / torch.log(positions.queries[..., None].clamp(min=0) + 2.0)

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return q @ k.mT + self.position_bias(positions, p)


KERNELS = {
    "dot | softplus": "blockwise",
    "angle | softplus(divide=n)": "blockwise",
    "additive | softplus": "additive",
    "minkowski(p=3) | softplus": "distance",
    "dot | retained": "blockwise",
    "dot | retained | mask(zero)": "blockwise",
    "dot | softplus | mask(after)": "blockwise",
    "projected | softplus": "blockwise",
    "projected | softmax": "sdpa",
    "projected | identity(divide=n)": "linear",
    "shifted | softmax": "blockwise",
    "shifted | sigmoid": "blockwise",
    "shifted | softplus(divide=learned)": "blockwise",
    "fire | softmax": "blockwise",
    "fire | entmax15": "blockwise",
    "fire | retained": "blockwise",
}
"""Mechanisms of these stages, and the kernel that is chosen for them."""


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("line", KERNELS)
def test_every_kernel_gives_the_results_of_the_reference(line: str, situation: str) -> None:
    assert attnlab.explain(line, length=64).kernel == KERNELS[line]
    for length in (1, 7, 257):
        given = problem(line, situation, length)
        for kernel in given.kernels:
            assert_as_exact(given, kernel, torch.float64)


@pytest.mark.parametrize("line", ["dot | softplus", "shifted | softmax", "fire | softmax", "projected | softplus"])
def test_it_is_right_in_single_precision_where_tiles_split_heads(line: str) -> None:
    given = problem(line, "both", 150, num_heads=16)
    assert_as_exact(given, KERNELS[line], torch.float32)


@pytest.mark.parametrize("line", ["shifted | softmax", "fire | softmax", "dot | retained"])
@pytest.mark.parametrize("batch", [1, 2])
def test_positions_of_the_caller_are_used(line: str, batch: int) -> None:
    given = problem(line, "causal", 150)
    keys = torch.arange(150) // 2 if batch == 1 else torch.stack([torch.arange(150), torch.arange(150).clamp(min=40)])
    shifted = torch.arange(7, 157)
    for positions in (keys, shifted, (shifted, keys)):
        results = []
        for kernel in (KERNELS[line], "rowwise", "reference"):
            leaves = {name: x.clone().requires_grad_() for name, x in given.tensors.items()}
            learned = {name: x for name, x in leaves.items() if name not in "qkv"}
            out = attnlab.attend(
                leaves["q"], leaves["k"], leaves["v"], line, causal=True, positions=positions, parameters=learned,
                kernel=kernel,
            )  # fmt: skip
            results.append([out, *torch.autograd.grad(out.square().sum(), list(leaves.values()))])
        for ours in results[:2]:
            for a, b in zip(ours, results[2], strict=True):
                torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("line", ["dot | softplus", "shifted | softmax", "fire | softmax"])
def test_one_token_after_another_gives_the_same_as_all_at_once(line: str) -> None:
    tensors = problem(line, "causal", 9).tensors
    learned = {name: x for name, x in tensors.items() if name not in "qkv"}
    q, k, v = (tensors[name] for name in "qkv")
    whole = attnlab.attend(q, k, v, line, causal=True, parameters=learned)
    for i in range(9):
        last = (q[:, :, i : i + 1], k[:, :, : i + 1], v[:, :, : i + 1])
        # A static cache has empty slots after the tokens, which a mask hides.
        slots = torch.arange(9) <= i
        positions = (torch.tensor([i]), torch.arange(9))
        static = attnlab.attend(last[0], k, v, line, mask=slots[None], parameters=learned, positions=positions)
        torch.testing.assert_close(attnlab.attend(*last, line, causal=True, parameters=learned), whole[:, :, i : i + 1])
        torch.testing.assert_close(static, whole[:, :, i : i + 1])


def test_dropout_drops_the_same_weights_as_in_the_reference() -> None:
    q, k, v = torch.randn(3, 2, 2, 150, 8, dtype=torch.float64).unbind(0)
    for line in ("dot | softplus", "shifted | softmax", "fire | relu"):
        ours, theirs = (
            attnlab.attend(
                q, k, v, line, causal=True, dropout=0.3, kernel=kernel, generator=torch.Generator().manual_seed(0)
            )
            for kernel in ("blockwise", "reference")
        )
        torch.testing.assert_close(ours, theirs)


def test_a_bias_that_is_not_finite_is_not_hidden() -> None:
    q, k, v = torch.randn(3, 1, 2, 20, 8).unbind(0)
    for line, name, shape in (
        ("shifted | softmax", "shifted_bias", (2, 13)),
        ("fire | softmax", "fire_c", (2,)),
    ):
        out = attnlab.attend(q, k, v, line, parameters={name: torch.full(shape, torch.nan)}, kernel="blockwise")
        assert out.isnan().any()


def test_a_masked_pair_may_have_any_score() -> None:
    @stage("logarithm")
    @dataclass(frozen=True)
    class Logarithm(Weights):
        pointwise = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.log(scores)

    q = torch.ones(1, 1, 5, 4, requires_grad=True)
    k = torch.ones(1, 1, 5, 4)
    k[:, :, 3:] = 0  # the logarithm of this score is −∞, and its slope too
    for how in ({"causal": True}, {"mask": torch.arange(5)[None] < 3}):
        rows = 3 if "causal" in how else 5
        out = attnlab.attend(q, k, k, "dot | logarithm", kernel="blockwise", **how)[:, :, :rows]
        assert out.isfinite().all()
        assert torch.autograd.grad(out.sum(), q)[0][:, :, :rows].isfinite().all()


def test_mistakes_are_said() -> None:
    @stage("flat")
    @dataclass(frozen=True)
    class Flat(Weights):
        pointwise = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return scores.sum(-1)

    @stage("unbiased")
    @dataclass(frozen=True)
    class Unbiased(Score):
        form = "features"
        bias_of = "positions"

        def __call__(self, q: Tensor, k: Tensor, p: Params, *, positions: Positions) -> Tensor:
            return q @ k.mT

    q = torch.randn(1, 2, 6, 4, requires_grad=True)
    with pytest.raises(ShapeError, match="'flat' must return"):
        attnlab.attend(q, q, q, "dot | flat")
    with pytest.raises(MechanismError, match="Unbiased declares bias_of and must define position_bias"):
        attnlab.attend(q, q, q, "unbiased | softmax")
    (gradient,) = torch.autograd.grad(attnlab.attend(q, q, q, "dot | retained").sum(), q, create_graph=False)
    assert gradient.isfinite().all()
    with pytest.raises(KernelError, match="second derivatives"):
        torch.autograd.grad(attnlab.attend(q, q, q, "dot | retained").sum(), q, create_graph=True)


def test_a_compiled_caller_gets_the_same_from_another_kernel() -> None:
    torch.compiler.reset()
    q = torch.randn(1, 2, 9, 4)

    def attend(x: Tensor) -> Tensor:
        return attnlab.attend(x, x, x, "shifted | retained", causal=True)

    torch.testing.assert_close(torch.compile(attend, backend="aot_eager")(q), attend(q))


def test_a_module_learns_every_parameter() -> None:
    module = attnlab.Attention("shifted | softplus", num_heads=2, head_dim=8)
    module(*torch.randn(3, 2, 2, 33, 8).unbind(0)).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in module.parameters())
