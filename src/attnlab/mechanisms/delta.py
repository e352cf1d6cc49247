"""The delta rule: a value is written as its difference from what earlier keys already recall (Schlag et al. 2021).

    u_i = β_i (v_i − Σ_{j<i} (k_i·k_j) u_j)        that is, u = (I + tril(β K Kᵀ, −1))⁻¹ β V

The weights then mix u instead of V: DeltaNet under identity weights; with `forget`, whose decay multiplies k_i·k_j,
Gated DeltaNet (Yang et al. 2024). The order is that of the keys, with or without a causal mask.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from .parameter import Dims, Parameter
from .stage import Params, Slot, Stage, argument, stage


@stage("delta")
@dataclass(frozen=True)
class Delta(Stage):
    """The values that the weights mix are corrected by what earlier keys recall; β = σ(x W), or a fixed number."""

    slot: ClassVar[Slot] = "delta"

    beta: float | Literal["learned"] = argument("learned", at_least=0, below=2)

    @property
    def uses_x(self) -> bool:
        """Whether β is computed from the layer's input."""
        return self.beta == "learned"

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        if self.beta != "learned":
            return {}
        bound = 1 / math.sqrt(dims.model_dim)
        return {"weight": Parameter((dims.num_heads, dims.model_dim), -bound, bound, has_weight_decay=True)}

    def strengths(self, x: Tensor | None, p: Params, like: Tensor) -> Tensor:
        """Return β of each token, [b h n 1], for keys `like` [b h n d]."""
        if self.beta != "learned":
            return like.new_full((*like.shape[:3], 1), self.beta)
        assert x is not None
        return torch.sigmoid(torch.einsum("bnm,hm->bhn", x, p["weight"]))[..., None]
