"""The error of a kernel against the fp64 reference, compared with that of the reference in the kernel's precision."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.kernels import attend, initial_values
from attnlab.kernels.comparison import VOCAB_SIZE, Setting
from attnlab.mechanisms import Mechanism

SLACK = 3.0
"""The allowed error, as a multiple of the reference's: a kernel adds the same numbers in another order."""


@dataclass(frozen=True)
class Agreement:
    """The largest errors of a kernel and of the reference in the same precision, and the error of rounding alone.

    An error is a difference to the fp64 reference, relative to the largest number of the same tensor.
    """

    error: float
    reference_error: float
    rounding: float

    @property
    def holds(self) -> bool:
        """Whether the kernel is as exact as its precision allows."""
        return self.error <= SLACK * (self.reference_error + self.rounding)


def measure_agreement(mechanism: Mechanism, length: int, setting: Setting) -> Agreement:
    """Compare the chosen kernel with the reference: the output, and the gradients of all inputs and parameters."""
    exact = compute_gradients(mechanism, length, dataclasses.replace(setting, dtype=torch.float64), "reference")
    rounding = torch.finfo(setting.dtype).eps * setting.head_dim**0.5
    error, reference_error = (
        _find_largest_error(compute_gradients(mechanism, length, setting, kernel), exact, rounding)
        for kernel in ("auto", "reference")
    )
    return Agreement(error, reference_error, rounding)


def compute_gradients(mechanism: Mechanism, length: int, setting: Setting, kernel: str) -> list[Tensor]:
    """Return the output and the gradients in training mode, from inputs that are the same in every dtype."""
    sizes = (setting.num_heads, setting.head_dim, setting.head_dim)
    learned = initial_values(mechanism, *sizes, vocab_size=VOCAB_SIZE)
    tokens = torch.arange(length) % VOCAB_SIZE if mechanism.find_stages_needing("tokens") else None
    tensors = dict(zip("qkv", dataclasses.replace(setting, dtype=torch.float32).inputs(length), strict=True))
    if mechanism.values:
        # By default x and first are v itself, and a stage that mixes them in would have almost no effect.
        generator = torch.Generator().manual_seed(2)
        tensors |= {name: torch.randn(tensors["v"].shape, generator=generator) for name in ("x", "first")}
    elif mechanism.find_stages_needing("x"):
        tensors["x"] = torch.randn(tensors["v"].shape, generator=torch.Generator().manual_seed(2))
    inputs, parameters = _copy_leaves(tensors, setting.dtype), _copy_leaves(learned, setting.dtype)
    out = attend(
        inputs["q"], inputs["k"], inputs["v"], mechanism, causal=setting.causal, kernel=kernel, parameters=parameters,
        training=True, x=inputs.get("x"), first=inputs.get("first"), tokens=tokens,
        generator=torch.Generator().manual_seed(3),
    )  # fmt: skip
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
    wanted = [*inputs.values(), *parameters.values()]
    gradients = torch.autograd.grad(out, wanted, upstream, allow_unused=True, materialize_grads=True)
    return [out.detach(), *gradients]


def _copy_leaves(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: x.detach().to(dtype, copy=True).requires_grad_() for name, x in tensors.items()}


def _find_largest_error(computed: Sequence[Tensor], exact: Sequence[Tensor], rounding: float) -> float:
    """Return the largest difference over all tensors, each relative to its largest number."""
    sizes = [float(x.abs().max()) for x in exact]
    # A gradient that is 0 up to rounding has no scale; the largest tensor's is used.
    scales = [size if size > rounding * max(sizes) else max(sizes) for size in sizes]
    return max(float((x.double() - y).abs().max()) / scale for x, y, scale in zip(computed, exact, scales, strict=True))
