"""Muon: momentum whose update of a matrix is made orthogonal (Jordan et al. 2024).

B ← μ B + (1 − μ) G,  W ← (1 − lr·decay) W − lr · 0.2 √max(rows, columns) · orthogonal((1 − μ) G + μ B)

The factor gives an update the root mean square of AdamW's, so that learning rates have AdamW's scale, and a matrix has
the same update as its transpose (Liu et al. 2025). torch.optim.Muon computes the same in bf16, which processors
without instructions for it emulate: 50 times slower than fp32, which is used here.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
RMS = 0.2
"""The root mean square of an update of AdamW, in learning rates."""
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the polynomial a·x + b·x³ + c·x⁵, which moves singular values from (0, 1] to about 1."""
NUM_ITERATIONS = 5
TINY = 1e-7

Slice = tuple[int, int, int]
"""Axis, start and width within a matrix."""


class Muon(torch.optim.Optimizer):
    """Updates matrices; one that holds several (queries, keys and values) part by part, as if they were apart."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], parts: Mapping[int, Sequence[Slice]], lr: float, weight_decay: float
    ) -> None:  # fmt: skip
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self.parts = parts
        """The parts of a matrix, by its id, if there are several."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group["lr"], group["weight_decay"])

    def _update(self, parameter: nn.Parameter, gradient: Tensor, lr: float, weight_decay: float) -> None:
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        direction = gradient.lerp(state["momentum_buffer"].lerp_(gradient, 1 - MOMENTUM), MOMENTUM)
        parameter.mul_(1 - lr * weight_decay)
        for axis, start, width in self.parts.get(id(parameter), [(0, 0, parameter.shape[0])]):
            part = orthogonalize(direction.narrow(axis, start, width))
            parameter.narrow(axis, start, width).add_(part, alpha=-lr * RMS * math.sqrt(max(part.shape)))


def orthogonalize(matrix: Tensor) -> Tensor:
    """Return U Vᵀ of U S Vᵀ, with singular values of about 0.7 to 1.2 in place of 1; zeros stay zeros."""
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / x.norm().clamp(min=TINY)
    linear, cubic, quintic = COEFFICIENTS
    for _ in range(NUM_ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic), x, beta=linear)
    return x.T if is_tall else x


def count_operations(rows: int, columns: int) -> int:
    """Return the operations of `orthogonalize`: per iteration, two products with the matrix and one of its Gram."""
    short, long = sorted((rows, columns))
    return NUM_ITERATIONS * (4 * short * short * long + 2 * short**3)
