"""How many parameters a model has and how many of them train, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from .parts import PARTS, Part, parameters_by_part


@dataclass(frozen=True)
class Counts:
    """Numbers in a model, by part: those that train, and all. What several modules share counts once."""

    trained: Mapping[Part, int]
    total: Mapping[Part, int]

    @property
    def num_trained(self) -> int:
        """How many train."""
        return sum(self.trained.values())

    @property
    def num_total(self) -> int:
        """How many there are."""
        return sum(self.total.values())

    @property
    def sentence(self) -> str:
        """Say it in a line."""
        shown = sorted(((n, part) for part, n in self.trained.items() if n), key=lambda pair: -pair[0])
        split = ", ".join(f"{part} {n:,}" for n, part in shown) or "none"
        return f"trains {self.num_trained:,} of {self.num_total:,} parameters: {split}"


def count_parameters(model: nn.Module) -> Counts:
    """Count a model's parameters by part; every part is there, with 0 where the model has none of it."""
    trained: dict[Part, int] = dict.fromkeys(PARTS, 0)
    total: dict[Part, int] = dict.fromkeys(PARTS, 0)
    for _, parameter, part in parameters_by_part(model):
        total[part] += parameter.numel()
        trained[part] += parameter.numel() * parameter.requires_grad
    return Counts(trained, total)
