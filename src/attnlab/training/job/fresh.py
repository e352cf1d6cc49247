"""Batches of a probe that never repeats a row: each is generated when it is due, and nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from attnlab.data import Arrangement, Probe
from attnlab.data.batches.arrangement import Rows
from attnlab.data.cache import hash_of
from attnlab.errors import TrainingError
from attnlab.tasks.batch import Feature

from ..spec import Segment
from .stream import hash_features

NUM_ROWS = 1 << 40
"""Rows that a seed draws from, each at most once: no run comes near their end."""
NUM_SHOWN = 1024
"""Rows that are shown to trivial strategies and hashed: as many as they may learn from, whatever the run trains on."""
SPLIT = "train"


class FreshStream:
    """New rows of a probe for every update, a function of the seed and the update's number."""

    def __init__(self, task: Any, probe: Probe, segment: Segment, seed: int) -> None:
        if segment.steps is None:
            raise TrainingError(
                f"segment '{segment.name}' counts epochs, and fresh rows never come to the end of one; give it steps"
            )
        self.task, self.probe, self.seed = task, probe, seed
        self.mean_length, self.longest = float(probe.length), probe.length
        self.arrangement = Arrangement(NUM_ROWS, segment.batch, seed)
        self.identity = hash_of([hash_features(list(self.features)), repr(probe), repr(task), segment.batch, seed])

    @property
    def features(self) -> Iterator[Feature]:
        """Yield some rows like those it trains on."""
        yield from self.task.generate_features(self.probe, range(NUM_SHOWN), SPLIT)

    def make(self, rows: Rows, epoch: int) -> Mapping[str, Tensor]:
        """Generate rows."""
        batch: Mapping[str, Tensor] = self.task.collate(self.task.generate_features(self.probe, rows, SPLIT))
        return batch

    def names(self, rows: Rows) -> list[str]:
        """Return the numbers of the rows, by which each can be made again."""
        return [str(row) for row in rows]
