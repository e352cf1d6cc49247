"""How order enters attention: what the model has, nothing, rotated queries and keys, or a bias of the scores.

A rotation acts on q and k before they meet, so that it combines with every score; a bias is added to the scaled score,
before a cap. Positions count tokens, also in a cache and after padding.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from attnlab.errors import MechanismError, ShapeError

from .parameter import Dims, Parameter
from .stage import Params, Positions, Slot, Stage, argument, stage


@dataclass(frozen=True)
class PositionScheme(Stage):
    """Interface of a position scheme, and what kernels may assume about it.

    rotates: `rotate` changes q and k. bias_of: what `position_bias` depends on, as for a score; None: there is none.
    A class that defines one of the two methods must declare the trait of it.
    """

    slot: ClassVar[Slot] = "positions"
    traits: ClassVar[tuple[str, ...]] = ("rotates", "bias_of")
    rotates: ClassVar[bool] = False
    bias_of: ClassVar[Literal["positions", "distances"] | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "position_bias" in vars(cls) and cls.bias_of is None:
            raise MechanismError(
                f"{cls.__name__} defines position_bias, which is not used without bias_of: declare "
                'bias_of = "distances" if it depends only on positions.distances, else bias_of = "positions"'
            )
        if "rotate" in vars(cls) and "rotates" not in vars(cls):
            raise MechanismError(f"{cls.__name__} defines rotate, which is not used without it: declare rotates = True")

    @property
    def is_of_model(self) -> bool:
        """Whether a model keeps its own scheme."""
        return False

    @property
    def uses_positions(self) -> bool:
        """Whether the scheme needs positions."""
        return self.rotates or self.bias_of is not None

    def choose_direction(self, causal: bool) -> "PositionScheme":
        """Return the scheme for attention in one direction or both."""
        return self

    def constants(self, num_heads: int) -> Mapping[str, Tensor]:
        """Return fixed numbers per head, which `position_bias` gets with the learned parameters."""
        return {}

    def rotate(self, t: Tensor, positions: Tensor) -> Tensor:
        """Return queries or keys [b h n d], changed according to their positions [b|1 1 n]."""
        return t

    def position_bias(self, positions: Positions, p: Params) -> Tensor:
        """Return what is added to the scores of the pairs at these positions, [b|1 h q k]."""
        raise MechanismError(f"{type(self).__name__} declares bias_of and must define position_bias(positions, p)")


@stage("positions")
@dataclass(frozen=True)
class ModelPositions(PositionScheme):
    """What the model has: its own position embeddings, rotation or bias."""

    rotates: ClassVar[bool] = False

    what: Literal["model"] = argument("model", shown="positional")

    @property
    def is_of_model(self) -> bool:
        return True

    def rotate(self, t: Tensor, positions: Tensor) -> Tensor:
        return t  # the model has rotated it


@stage("nope")
@dataclass(frozen=True)
class NoPositions(PositionScheme):
    """No positions (Kazemnejad et al. 2023): order enters through the causal mask alone."""

    rotates: ClassVar[bool] = False

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"'{self}' removes the positions of a model; q, k and v are unchanged",)

    def rotate(self, t: Tensor, positions: Tensor) -> Tensor:
        return t


@stage("rope")
@dataclass(frozen=True)
class Rope(PositionScheme):
    """Rotates channel c of q and k with channel c + d/2 by position·base^(−2c/d) (Su et al. 2021, as Llama does).

    share: the share d of the channels that is rotated, the first ones. Angles are computed in fp32, as in Llama.
    """

    rotates: ClassVar[bool] = True

    base: float = argument(10000.0, at_least=1)
    share: float = argument(1.0, at_least=1e-6)

    def rotate(self, t: Tensor, positions: Tensor) -> Tensor:
        width = int(t.shape[-1] * self.share)
        if width % 2 or not 0 < width <= t.shape[-1]:
            raise ShapeError(
                f"'{self}' rotates pairs of channels, and its share of head_dim={t.shape[-1]} is {width} channels; "
                "it must be an even number up to head_dim"
            )
        steps = torch.arange(0, width, 2, dtype=torch.int64, device=t.device).float()
        angles = positions[..., None].float() * (1.0 / (self.base ** (steps / width)))  # [b|1 1 n d/2]
        cos, sin = angles.cos().to(t.dtype), angles.sin().to(t.dtype)
        first, second, rest = t.split([width // 2, width // 2, t.shape[-1] - width], -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


@stage("alibi")
@dataclass(frozen=True)
class Alibi(PositionScheme):
    """s_ij − m_h·|i − j| with fixed slopes m_h, 2^(−8h/H) (Press et al. 2021); for any number of heads as in BLOOM."""

    bias_of: ClassVar[Literal["distances"]] = "distances"

    @property
    def replaces(self) -> Mapping[str, str | None]:
        return {"alibi": None}

    def constants(self, num_heads: int) -> Mapping[str, Tensor]:
        power = 2 ** math.floor(math.log2(num_heads))
        base = torch.tensor(2.0 ** -(2.0 ** -(math.log2(power) - 3)))
        more = torch.tensor(2.0 ** -(2.0 ** -(math.log2(2 * power) - 3)))
        # A number of heads that is no power of 2 takes every other slope of twice as many heads.
        slopes = (base ** torch.arange(1, 1 + power), more ** torch.arange(1, 1 + 2 * (num_heads - power), 2))
        return {"slopes": torch.cat(slopes)}

    def position_bias(self, positions: Positions, p: Params) -> Tensor:
        return -p["slopes"][:, None, None] * positions.distances.abs()


@stage("relative")
@dataclass(frozen=True)
class Relative(PositionScheme):
    """s_ij + b_h(bucket of j − i): learned per head, far distances share buckets (Raffel et al. 2020).

    bidirectional: whether keys after a query have buckets of their own; by default unless the mechanism is causal.
    """

    bias_of: ClassVar[Literal["distances"]] = "distances"

    buckets: int = argument(32, at_least=4, below=2**20)
    max_distance: int = argument(128, at_least=2, below=2**31)
    bidirectional: bool | None = None

    def choose_direction(self, causal: bool) -> "Relative":
        is_open = self.bidirectional is None
        return Relative(self.buckets, self.max_distance, not causal) if is_open else self

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        return {"bias": Parameter((dims.num_heads, self.buckets), -0.1, 0.1)}

    @property
    def replaces(self) -> Mapping[str, str | None]:
        return {"relative bias": "bias"}

    def find_buckets(self, distances: Tensor) -> Tensor:
        """Return the bucket of each distance, the query's position minus the key's."""
        ahead, num = torch.zeros_like(distances), self.buckets
        if self.bidirectional:
            num //= 2
            ahead, distances = (distances < 0) * num, distances.abs()
        distances = distances.clamp(min=0)
        exact = num // 2
        ratio = torch.log(distances.clamp(min=1).float() / exact) / math.log(max(self.max_distance / exact, 1 + 1e-6))
        far = (exact + (ratio * (num - exact)).long()).clamp(max=num - 1)
        return ahead + torch.where(distances < exact, distances, far)

    def position_bias(self, positions: Positions, p: Params) -> Tensor:
        return p["bias"][:, self.find_buckets(positions.distances[:, 0])].transpose(0, 1)
