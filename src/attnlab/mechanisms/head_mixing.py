"""How heads meet: mixed scores and weights, or pairs of heads whose outputs are subtracted."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.errors import ShapeError

from .features import rms_unit
from .parameter import Dims, Parameter
from .stage import Params, Slot, Stage, argument, stage

EPSILON = 1e-5
"""Added to the mean square of a head's output before its root is divided by, as in the Differential Transformer."""


@dataclass(frozen=True)
class HeadMixing(Stage):
    """Interface of a stage that mixes heads, and what kernels may assume about it.

    mixes_pairs: `mix_scores` or `mix_weights` is defined, so that a kernel must hold the pairs of all heads at once.
    Each method leaves what it gets unchanged by default.
    """

    slot: ClassVar[Slot] = "heads"
    traits: ClassVar[tuple[str, ...]] = ("mixes_pairs",)
    mixes_pairs: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.mixes_pairs = (cls.mix_scores, cls.mix_weights) != (HeadMixing.mix_scores, HeadMixing.mix_weights)

    @property
    def advice(self) -> str:
        """What to declare for a faster kernel, or an empty string."""
        if not self.mixes_pairs or type(self).mix_scores is not HeadMixing.mix_scores:
            return ""
        return (
            f"{type(self).__name__} mixes weights, and a kernel must hold all of them: if a head's output is a sum "
            "of what a few heads' weights give for its values, as in a difference of pairs, define spread_values(v) "
            "and combine(output, p, layer); if every head mixes with every other, that is slower"
        )

    def mix_scores(self, scores: Tensor, p: Params) -> Tensor:
        """Return the mixed scores [b h q k]."""
        return scores

    def mix_weights(self, weights: Tensor, p: Params) -> Tensor:
        """Return the mixed weights [b h q k]."""
        return weights

    def spread_values(self, v: Tensor) -> Tensor:
        """Return the values that each head's weights mix, [b h k c], of v [b h k e]."""
        return v

    def combine(self, output: Tensor, p: Params, layer: int) -> Tensor:
        """Return the output [b h q e] of what each head mixed, [b h q c]."""
        return output


@stage("talking_heads")
@dataclass(frozen=True)
class TalkingHeads(HeadMixing):
    """Two learned matrices mix scores and weights across heads, the identity at first (Shazeer et al. 2020)."""

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        shape = (dims.num_heads, dims.num_heads)
        identity = torch.eye(dims.num_heads)
        return {name: Parameter(shape, start=identity, has_weight_decay=True) for name in ("scores", "weights")}

    def mix_scores(self, scores: Tensor, p: Params) -> Tensor:
        return torch.einsum("bhqk,hg->bgqk", scores, p["scores"])

    def mix_weights(self, weights: Tensor, p: Params) -> Tensor:
        return torch.einsum("bhqk,hg->bgqk", weights, p["weights"])


@stage("differential")
@dataclass(frozen=True)
class Differential(HeadMixing):
    """(A₁ − λA₂)V of heads i and i + H/2 with the values of both, then normalised per pair (Ye et al. 2024).

    λ = exp(λ_q1·λ_k1) − exp(λ_q2·λ_k2) + λ_init(l) with λ_init(l) = lambda_init − 0.6·e^(−0.3 l) in layer l, and the
    normalised output is multiplied by 1 − λ_init(l). Pair i writes its two halves to heads 2i and 2i + 1.
    """

    lambda_init: float = argument(0.8, at_least=0.6, below=1)

    def compute_start(self, layer: int) -> float:
        """Return λ_init of a layer."""
        return self.lambda_init - 0.6 * math.exp(-0.3 * layer)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        shape, bound = (dims.num_heads, dims.head_dim), 0.1 * math.sqrt(3)  # a standard deviation of 0.1
        names = ("query1", "key1", "query2", "key2")
        return {name: Parameter(shape, -bound, bound, per="layer") for name in names}

    def spread_values(self, v: Tensor) -> Tensor:
        if v.shape[1] % 2:
            raise ShapeError(f"'{self}' subtracts pairs of heads, and there are {v.shape[1]}: use an even number")
        first, second = v.chunk(2, 1)
        return torch.cat([first, second], -1).repeat(1, 2, 1, 1)

    def combine(self, output: Tensor, p: Params, layer: int) -> Tensor:
        start = self.compute_start(layer)
        factor = torch.exp((p["query1"] * p["key1"]).sum(-1)) - torch.exp((p["query2"] * p["key2"]).sum(-1)) + start
        # One per layer in a model; in a bare call there is one per head, and a pair takes that of its first.
        factor = factor[: output.shape[1] // 2, None, None]
        first, second = output.chunk(2, 1)
        pairs = rms_unit(first - factor * second, EPSILON) * (1 - start)
        halves: Tensor = pairs.unflatten(-1, (2, -1))
        return halves.permute(0, 1, 3, 2, 4).flatten(1, 2)
