"""Everything that one run needs in memory: a model ready to train, a task, batches, examples and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel

from attnlab.tasks.batch import Feature

from ..spec import Settings
from .stream import Stream


@dataclass(frozen=True)
class Examples:
    """Examples of a task, and their features."""

    examples: Sequence[Any]
    features: Sequence[Feature]
    batch: int = 32


@dataclass(frozen=True)
class Job:
    """A run that is ready to start: `model` has its mechanism installed and its tuning applied."""

    model: PreTrainedModel
    task: Any
    streams: Sequence[Stream]
    """The training data of each segment."""
    settings: Settings
    seed: int = 0
    dev: Examples | None = None
    known: Examples | None = None
    """Training examples to score at the end."""
    tokenizer: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    """What identifies the run: saved as config.json, and compared with an existing one."""
    threads: int | None = None
    title: str = ""
    """The name of the run in trackers; empty for the name of its folder."""
    tune: Examples | None = None
    """What the best checkpoint is chosen on; None if the last one counts."""

    @property
    def record(self) -> dict[str, Any]:
        """The config, with the settings of a job that was made without one."""
        return {**self.settings.result_settings, "seed": self.seed, **self.config}

    @property
    def steps_of_segments(self) -> list[int]:
        """The number of updates of each segment."""
        pairs = zip(self.settings.segments, self.streams, strict=True)
        return [segment.num_steps(stream.arrangement.steps_per_epoch) for segment, stream in pairs]

    @property
    def operations(self) -> float:
        """Roughly the operations of the matrix products in the smallest pass."""
        pairs = zip(self.settings.segments, self.streams, strict=True)
        tokens = min(min(part.micro_batch or part.batch, part.batch) * stream.mean_length for part, stream in pairs)
        return 6.0 * sum(p.numel() for p in self.model.parameters() if p.dim() >= 2) * tokens

    @property
    def num_steps(self) -> int:
        """The number of updates."""
        return sum(self.steps_of_segments)
