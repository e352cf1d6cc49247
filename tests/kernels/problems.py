"""Attention problems to put to a kernel, and the error a kernel may make: what the reference itself makes in the
same precision, measured against the reference in fp64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from attnlab.kernels import attend, initial_values
from attnlab.kernels.call import MaskKind, Request
from attnlab.kernels.choose import list_kernels
from attnlab.mechanisms import Mechanism

Results = dict[str, Tensor]
"""The output and the gradients, by name."""

INPUTS = ("q", "k", "v", "x_queries", "x_keys")
"""The tensors of a problem that are no learned parameters."""

SITUATIONS = ("plain", "causal", "padded", "both", "cross", "cached")
LENGTHS = (1, 7, 63, 100, 257)
BATCH, HEADS, HEAD_DIM = 2, 2, 8
VOCAB_SIZE = 11
FEW = 16
"""Numbers of a result that can be lucky."""
MANY_HEADS, SPLIT_LENGTH = 16, 150
"""Sizes at which every kernel splits a problem: its queries, its heads or its sequences."""


@dataclass(frozen=True)
class Problem:
    """Inputs in fp64 and how they are to be attended over."""

    mechanism: Mechanism
    tensors: Mapping[str, Tensor]
    causal: bool
    mask: Tensor | None

    @property
    def request(self) -> Request:
        q, k, v = (self.tensors[name] for name in "qkv")
        kind: MaskKind = "none" if self.mask is None else "keys" if self.mask.shape[2] == 1 else "pairs"
        return Request(
            self.mechanism, q.shape[2], k.shape[2], q.shape[3], v.shape[3], q.shape[1], q.shape[0], self.causal, kind
        )

    @property
    def num_pairs(self) -> int:
        """The pairs of all sequences and heads."""
        q, k = self.tensors["q"], self.tensors["k"]
        return q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]

    @property
    def kernels(self) -> list[str]:
        """The kernels that accept the problem."""
        return list_kernels(self.request)

    @cached_property
    def _references(self) -> dict[torch.dtype, tuple[Problem, Results, Results]]:
        return {}

    def compute_reference(self, dtype: torch.dtype) -> tuple[Problem, Results, Results]:
        """Return the problem with inputs that `dtype` can hold exactly, and the reference's results for it in fp64 and
        in `dtype`: once, since all kernels are compared with them."""
        if dtype not in self._references:
            tensors = {name: tensor.to(dtype).double() for name, tensor in self.tensors.items()}
            rounded = Problem(self.mechanism, tensors, self.causal, self.mask)
            self._references[dtype] = (
                rounded, rounded.solve("reference", torch.float64), rounded.solve("reference", dtype),
            )  # fmt: skip
        return self._references[dtype]

    def solve(self, kernel: str, dtype: torch.dtype) -> Results:
        """Return the output and the gradients of every input, in fp64, as computed by a kernel in `dtype`."""
        given = {name: tensor.to(dtype).requires_grad_() for name, tensor in self.tensors.items()}
        parameters = {name: given[name] for name in given if name not in INPUTS}
        x = (given["x_queries"], given["x_keys"]) if "x_keys" in given else None
        out = attend(
            given["q"], given["k"], given["v"], self.mechanism, causal=self.causal, mask=self.mask, kernel=kernel,
            parameters=parameters, x=x, tokens=tokens_for(self.mechanism, given["k"]),
        )  # fmt: skip
        generator = torch.Generator().manual_seed(1)
        weight = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(dtype)
        gradients = torch.autograd.grad(out, list(given.values()), weight, allow_unused=True, materialize_grads=True)
        found = {f"d{name}": g for name, g in zip(given, gradients, strict=True)}
        return {name: tensor.detach().double() for name, tensor in {"out": out, **found}.items()}


def x_for(mechanism: str | Mechanism, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the layer's input at queries and keys, split by heads, if a stage of the mechanism needs it."""
    if not Mechanism.parse(mechanism).find_stages_needing("x"):
        return None
    keys, num_queries = k.flip(-1) / 2, q.shape[2]
    return keys[:, :, k.shape[2] - num_queries :] if num_queries <= k.shape[2] else q.flip(-1) / 2, keys


def tokens_for(mechanism: str | Mechanism, k: Tensor) -> Tensor | None:
    """Return token ids [b k] below VOCAB_SIZE, if a stage of the mechanism needs them."""
    if not Mechanism.parse(mechanism).find_stages_needing("tokens"):
        return None
    return (7 * torch.arange(k.shape[2]) + 3 * torch.arange(k.shape[0])[:, None]) % VOCAB_SIZE


def problem(mechanism: str | Mechanism, situation: str, length: int, seed: int = 0, num_heads: int = HEADS) -> Problem:
    """Make a problem of a mechanism in a situation."""
    parsed = Mechanism.parse(mechanism)
    generator = torch.Generator().manual_seed(seed * 1000 + length)
    num_queries = {"cross": max(1, length - 3), "cached": max(1, length // 3)}.get(situation, length)

    def draw(n: int) -> Tensor:
        return torch.randn(BATCH, num_heads, n, HEAD_DIM, generator=generator, dtype=torch.float64)

    tensors = {"q": draw(num_queries), "k": draw(length), "v": draw(length)}
    if parsed.find_stages_needing("x"):
        x = draw(length).transpose(1, 2).flatten(2)
        tensors |= {"x_queries": x[:, length - num_queries :], "x_keys": x}
    learned = initial_values(parsed, num_heads, HEAD_DIM, HEAD_DIM, vocab_size=VOCAB_SIZE)
    tensors |= {name: value.double() for name, value in learned.items()}
    mask = None
    if situation in ("padded", "both"):
        # The second sequence is shorter; under causality its first token is padding too: a row that sees nothing.
        mask = torch.ones(BATCH, 1, 1, length, dtype=torch.bool)
        mask[1, ..., length - length // 3 :] = False
        mask[1, ..., 0] = situation == "padded" and length == 1
    if situation == "cross":
        mask = torch.rand(BATCH, 1, num_queries, length, generator=generator) > 0.3
    return Problem(parsed, tensors, situation in ("causal", "both", "cached"), mask)


def size(x: Tensor) -> float:
    """Return the root mean square."""
    return float(x.square().mean().sqrt()) if x.numel() else 0.0


def assert_as_exact(given: Problem, kernel: str, dtype: torch.dtype) -> None:
    """Check a kernel in `dtype` against the fp64 reference.

    The budget is three times the error that the reference makes in that precision, and one rounding of a dot product
    of results (a gradient that is 0 is the difference of two such). A result of few numbers can be lucky: the
    reference's error for it is taken to be at least the relative one of its worst result, and twice that. In fp64,
    where the reference is the truth, its error is that in fp32, scaled by the precision. The gradient of a parameter,
    a sum over all pairs, may also differ by the rounding of a sum by halves.
    """
    low = torch.float32 if dtype == torch.float64 else dtype
    rounded, truth, rough = given.compute_reference(low)
    answer = rounded.solve(kernel, dtype)
    finer = torch.finfo(dtype).eps / torch.finfo(low).eps
    sizes = {name: size(exact) for name, exact in truth.items()}
    errors = {name: size(rough[name] - exact) * finer for name, exact in truth.items()}
    scale = max(sizes.values())
    if scale < torch.finfo(low).eps:  # everything cancels, as in the output of one token without its own value
        scale = size(rounded.tensors["v"].detach())
    rounding = torch.finfo(dtype).eps * scale * HEAD_DIM**0.5
    worst = max((errors[name] / sizes[name] for name in truth if sizes[name] > rounding), default=0.0)
    for name, exact in truth.items():
        assert not answer[name].isnan().any(), f"{name} has NaN"
        luck = 2 if exact.numel() <= FEW else 1
        budget = 3 * (luck * max(errors[name], worst * sizes[name]) + rounding)
        if name != "out" and name[1:] not in INPUTS:
            # The gradient of a parameter is a sum over all pairs, in an order that differs between kernels.
            budget += torch.finfo(dtype).eps * sizes[name] * math.log2(max(2, rounded.num_pairs))
        error = size(answer[name] - exact)
        assert error <= budget, f"{name}: error {error:.3g}, the reference's budget is {budget:.3g}"
