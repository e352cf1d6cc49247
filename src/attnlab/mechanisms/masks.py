"""Masks: which pairs may meet, beside the causal rule and padding. Several combine: a pair needs the consent of all.

What a mask forbids is left out of the weights, and of n. Distances are between positions, which count tokens: padding
and the slots of a cache do not move a window. A prefix, whose positions are negative, is visible to all.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .stage import Positions, Slot, Stage, argument, stage

LARGEST = 2**31
"""No sequence is this long, and no position needs more bits."""


@dataclass(frozen=True)
class Mask(Stage):
    """Interface of a mask, and what kernels may assume about it.

    reach: no query sees a key that is this far away, or farther; None if the distance alone forbids no pair.
    find_reach: the same where it depends on the number of heads.
    is_by_distance: the call depends on nothing but the distances of positions, and on the head.
    """

    slot: ClassVar[Slot] = "mask"
    traits: ClassVar[tuple[str, ...]] = ("reach", "find_reach", "is_by_distance")
    is_by_distance: ClassVar[bool] = False

    @property
    def reach(self) -> int | None:
        """The distance from which on no query sees a key."""
        return None

    def find_reach(self, num_heads: int) -> int | None:
        """Return the distance from which on no query of any head sees a key."""
        return self.reach

    @property
    def is_by_row(self) -> bool:
        """Whether the call depends on the scores or the visible pairs of a row, not on positions and heads alone."""
        return "scores" in self.inputs or "visible" in self.inputs

    @property
    def advice(self) -> str:
        """What to declare for a faster kernel, or an empty string."""
        name = type(self).__name__
        if self.is_by_row and "positions" in self.inputs:
            return (
                f"{name} requests {' and '.join(name for name in self.inputs if name in ('scores', 'visible'))}, so "
                "that kernels must hold whole rows of scores, and no reach is used: if its pairs depend on positions "
                "and heads alone, request `positions` and `num_heads` instead"
            )
        if self.is_by_row or self.find_reach(1) is not None:
            return ""
        return (
            f"{name} declares no reach: if no query sees a key at some distance or beyond, define the property "
            "reach(self), or find_reach(self, num_heads), and the pairs beyond it are never computed"
        )

    @abstractmethod
    def __call__(self, *args: Any, **needs: Any) -> Tensor:
        """Return the pairs that may meet, booleans [b|1 h|1 q k]. A stage requests inputs by keyword-only parameters,
        instead of these: any of `positions`, `num_heads`, `scores` and `visible`."""


@stage("window")
@dataclass(frozen=True)
class Window(Mask):
    """|i − j| < width (Beltagy et al. 2020): under the causal mask a query sees itself and width − 1 tokens before."""

    is_by_distance: ClassVar[bool] = True

    width: int = argument(shown="positional", at_least=1, below=LARGEST)

    @property
    def reach(self) -> int:
        return self.width

    def __call__(self, *, positions: Positions) -> Tensor:
        return positions.distances.abs() < self.width


@stage("chunk")
@dataclass(frozen=True)
class Chunk(Mask):
    """⌊i/size⌋ = ⌊j/size⌋: a query sees the tokens of its own chunk (as in Llama 4)."""

    size: int = argument(shown="positional", at_least=1, below=LARGEST)

    @property
    def reach(self) -> int:
        return self.size

    def __call__(self, *, positions: Positions) -> Tensor:
        queries, keys = (torch.div(x, self.size, rounding_mode="floor") for x in (positions.queries, positions.keys))
        return queries[..., :, None] == keys[..., None, :]


@stage("top_k")
@dataclass(frozen=True)
class TopK(Mask):
    """The k largest scores of a row, the first of ties (Gupta et al. 2021); n counts all that it chooses from."""

    k: int = argument(shown="positional", at_least=1, below=LARGEST)

    def __call__(self, *, scores: Tensor, visible: Tensor | None = None) -> Tensor:
        seen = scores.detach() if visible is None else scores.detach().masked_fill(~visible, -torch.inf)
        largest = seen.argsort(dim=-1, descending=True, stable=True)[..., : self.k]
        return torch.zeros_like(seen, dtype=torch.bool).scatter(-1, largest, True)
