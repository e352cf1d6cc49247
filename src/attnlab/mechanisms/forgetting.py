"""How the past fades: each token keeps the share f of what came before it, and a pair at a distance keeps the product.

    F_i = Σ_{l ≤ i} log f_l        the past of a pair (i, j) is kept by exp(F_i − F_j), for j ≤ i

Weights that normalise a row get F_i − F_j added to their scores; pointwise weights are multiplied by its exponential.
Without a causal mask the factor is exp(−|F_i − F_j|), and what a mask hides from all queries is not counted.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from .parameter import Dims, Parameter
from .stage import Params, Slot, Stage, StageError, argument, stage

START = 3.0
"""Initial bias of the gate: at first, a token keeps σ(3) = 95 % of the past."""


@dataclass(frozen=True)
class Forget(Stage):
    """Interface of a stage that lets the past fade, and what kernels may assume about it.

    uses_x: the share is computed from the layer's input; without it, `log_kept` gets None.
    is_per_channel: the share is one for each channel of a key, and multiplies the channels of q·k.
    """

    slot: ClassVar[Slot] = "forget"
    traits: ClassVar[tuple[str, ...]] = ("uses_x", "is_per_channel")

    @property
    def uses_x(self) -> bool:
        """Whether `log_kept` reads the layer's input."""
        return True

    @property
    def is_per_channel(self) -> bool:
        """Whether each channel fades at its own rate."""
        return False

    @abstractmethod
    def log_kept(self, x: Tensor | None, p: Params, k: Tensor) -> Tensor:
        """Return log f ≤ 0 of each token of x [b n m] and the keys [b h n d]: [b|1 h n 1], per channel [b|1 h n d]."""


@stage("forget")
@dataclass(frozen=True)
class ForgetGate(Forget):
    """f = σ(x W + b) per head or channel: FoX under softmax (Lin et al. 2025), GLA under identity (Yang et al. 2023).

    rate: a fixed f instead, one number for all heads, or retention's 1 − 2^(−5−h) of head h (Sun et al. 2023).
    """

    per: Literal["head", "channel"] = "head"
    from_: Literal["x"] = "x"
    rate: float | Literal["retention"] | None = argument(None, at_least=1e-6, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None and self.per == "channel":
            raise StageError("per", f"{self.name}: a fixed rate is one per head; omit per=channel, or rate")

    @property
    def uses_x(self) -> bool:
        return self.rate is None

    @property
    def is_per_channel(self) -> bool:
        return self.per == "channel"

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        if self.rate is not None:
            return {}
        shape = (dims.num_heads,) if self.per == "head" else (dims.num_heads, dims.head_dim)
        bound = 1 / math.sqrt(dims.model_dim)
        return {
            "weight": Parameter((*shape, dims.model_dim), -bound, bound, has_weight_decay=True),
            "bias": Parameter(shape, START, START),
        }

    def log_kept(self, x: Tensor | None, p: Params, k: Tensor) -> Tensor:
        if self.rate is not None:
            heads = torch.arange(k.shape[1], device=k.device, dtype=k.dtype)
            rates = 1 - 2 ** (-5 - heads) if self.rate == "retention" else torch.full_like(heads, self.rate)
            return torch.log(rates)[None, :, None, None].expand(1, -1, k.shape[2], 1)
        assert x is not None
        if self.per == "head":
            return functional.logsigmoid(torch.einsum("bnm,hm->bhn", x, p["weight"]) + p["bias"][:, None])[..., None]
        return functional.logsigmoid(torch.einsum("bnm,hdm->bhnd", x, p["weight"]) + p["bias"][:, None])
