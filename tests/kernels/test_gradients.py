"""Gradients against finite differences in fp64, for every catalog mechanism in every kernel that accepts it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnlab.kernels import attend
from attnlab.mechanisms import UNIFORM

from .problems import INPUTS, problem, tokens_for

SMOOTH = [name for name, mechanism in UNIFORM.items() if mechanism.weights.name != "argmax"]


@pytest.mark.parametrize("situation", ["causal", "padded", "cached"])
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_finite_differences(name: str, situation: str) -> None:
    given = problem(UNIFORM[name], situation, 5, seed=3)
    # One sequence, the one with padding.
    inputs = tuple(
        (tensor[1:] if name in INPUTS else tensor).clone().requires_grad_() for name, tensor in given.tensors.items()
    )
    mask = None if given.mask is None else given.mask[1:]
    names = list(given.tensors)
    for kernel in given.kernels:

        def run(*tensors: Tensor, kernel: str = kernel) -> Tensor:
            values = dict(zip(names, tensors, strict=True))
            q, k, v = (values.pop(key) for key in "qkv")
            x = (values.pop("x_queries"), values.pop("x_keys")) if "x_keys" in values else None
            return attend(
                q, k, v, given.mechanism, causal=given.causal, mask=mask, kernel=kernel, parameters=values, x=x,
                tokens=tokens_for(given.mechanism, k),
            )  # fmt: skip

        assert torch.autograd.gradcheck(run, inputs, nondet_tol=1e-12), kernel
