"""Published implementations that mechanisms are compared with in fp64, outputs and gradients.

flash-linear-attention (fla-core) has a naive function for each of its kernels, in the layout [batch, length, heads, d].
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.kernels import initial_values
from attnlab.mechanisms import Mechanism

BATCH, HEADS, LENGTH, DIM = 2, 4, 37, 16
TOLERANCE = 1e-10


def import_naive(module: str, name: str) -> Callable[..., Any]:
    """Return a naive function of fla-core, which warns on import that it finds no GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(importlib.import_module(f"fla.ops.{module}.naive"), name)  # type: ignore[no-any-return]


@contextmanager
def fp32_as_fp64() -> Iterator[None]:
    """Let published code that casts to fp32, whatever it is given, compute in fp64."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("float", "float32"):
            patch.setattr(torch, name, torch.float64)
        patch.setattr(Tensor, "float", Tensor.double)
        yield


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Return standard normal numbers in fp64 that require gradients."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


def draw_inputs(num_heads: int = HEADS, length: int = LENGTH) -> dict[str, Tensor]:
    """Return q, k and v, [b h n d]."""
    return {name: draw(BATCH, num_heads, length, DIM, seed=at) for at, name in enumerate("qkv")}


def draw_inputs_with_x(length: int = LENGTH) -> dict[str, Tensor]:
    """Return q, k and v, and the layer's input x [b n m]."""
    return {**draw_inputs(length=length), "x": draw(BATCH, length, HEADS * DIM, seed=5)}


def draw_parameters(line: str, num_heads: int = HEADS) -> dict[str, Tensor]:
    """Return the learned parameters of a line at values that differ from their initial ones."""
    declared = initial_values(Mechanism.parse(line), num_heads, DIM, DIM)
    return {
        name: (value.double() + 0.3 * draw(*value.shape, seed=7 + at).detach()).requires_grad_()
        for at, (name, value) in enumerate(declared.items())
    }


def assert_equal(
    line: str, publish: Callable[..., Tensor], inputs: Mapping[str, Tensor], parameters: Mapping[str, Tensor],
    **options: Any,
) -> None:  # fmt: skip
    """Compare a line, in every kernel that accepts it, with a published function of the same inputs."""
    leaves = {**inputs, **parameters}
    expected = publish(**leaves)
    cotangent = draw(*expected.shape, seed=99).detach()
    truth = torch.autograd.grad(expected, list(leaves.values()), cotangent, materialize_grads=True)
    for kernel in ("auto", "reference"):
        out = attnlab.attend(
            inputs["q"],
            inputs["k"],
            inputs["v"],
            line,
            parameters=parameters,
            kernel=kernel,
            x=inputs.get("x"),
            **options,
        )
        gradients = torch.autograd.grad(out, list(leaves.values()), cotangent, materialize_grads=True)
        for name, ours, theirs in zip(("out", *leaves), (out, *gradients), (expected, *truth), strict=True):
            error, size = (float(x.detach().abs().max()) for x in (ours - theirs, theirs))
            assert error <= TOLERANCE * max(1.0, size), f"{kernel}: {name} differs by {error:.3g}"
