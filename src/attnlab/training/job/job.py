"""All that one run needs, in memory: a model ready to train, a task, batches, examples to evaluate on, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel

from attnlab.tasks.batch import Feature

from ..spec import Settings
from .stream import Stream


@dataclass(frozen=True)
class Examples:
    """Examples of a task, and the features made of them."""

    examples: Sequence[Any]
    features: Sequence[Feature]
    batch: int = 32


@dataclass(frozen=True)
class Job:
    """A run that could start now. `model` has its mechanism installed, and its tuning applied."""

    model: PreTrainedModel
    task: Any
    streams: Sequence[Stream]
    """What each segment of the settings trains on."""
    settings: Settings
    seed: int = 0
    dev: Examples | None = None
    known: Examples | None = None
    """Some of what it trains on, to be scored at the end."""
    tokenizer: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """What the run is called by: saved as config.json, and compared with the one that is there."""
    threads: int | None = None

    @property
    def record(self) -> dict[str, Any]:
        """All that a run is known by: its config, and its settings also where nobody wrote one."""
        return {**self.settings.deciding, "seed": self.seed, **self.config}

    @property
    def steps_of_segments(self) -> list[int]:
        """How many updates each segment has."""
        return [
            segment.num_steps(stream.arrangement.steps_per_epoch)
            for segment, stream in zip(self.settings.segments, self.streams, strict=True)
        ]

    @property
    def operations(self) -> float:
        """Roughly how many operations the matrix products of the smallest pass take."""
        weights = sum(p.numel() for p in self.model.parameters() if p.dim() >= 2)
        return (
            6.0
            * weights
            * min(
                min(segment.micro_batch or segment.batch, segment.batch) * stream.mean_length
                for segment, stream in zip(self.settings.segments, self.streams, strict=True)
            )
        )

    @property
    def num_steps(self) -> int:
        """How many updates the run has."""
        return sum(self.steps_of_segments)
