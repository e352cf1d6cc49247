"""Batches of one segment: from features of a task, or rows of a token file. A batch is a function of its position."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from torch import Tensor

from attnlab.data import Arrangement, BatchPlan, Loader, Position, TokenFile
from attnlab.data.batches.arrangement import Rows
from attnlab.data.cache import hash_of
from attnlab.errors import TrainingError
from attnlab.tasks.batch import BatchPadding, Feature

from ..spec import Segment

AHEAD = 2
"""Updates whose batches are made before they are needed."""


class Stream(Protocol):
    """What a segment trains on."""

    @property
    def arrangement(self) -> Arrangement:
        """Which rows make up which batch."""

    @property
    def identity(self) -> str:
        """A hash of all that decides its batches."""

    @property
    def features(self) -> Iterable[Feature]:
        """What it trains on, for trivial strategies to learn from."""

    @property
    def mean_length(self) -> float:
        """Tokens of a row."""

    @property
    def longest(self) -> int:
        """Tokens of the longest row."""

    def make(self, rows: Rows, epoch: int) -> Mapping[str, Tensor]:
        """Make a batch of rows."""

    def names(self, rows: Rows) -> list[str]:
        """Name the examples of rows, for a record of what a step had before it."""


class FeatureStream:
    """Batches of a task's features."""

    def __init__(self, task: Any, features: Sequence[Feature], segment: Segment, seed: int) -> None:
        if not features:
            raise TrainingError("there is nothing to train on: the task made no features of its data")
        self.task, self.features, self.seed = task, features, seed
        self.lengths = np.array([len(feature) for feature in features])
        self.mean_length = float(self.lengths.mean())
        self.longest = int(self.lengths.max())
        last: Literal["drop", "short"] = "drop" if len(features) >= segment.batch else "short"
        self.arrangement = Arrangement(
            len(features), segment.batch, seed, last, segment.window, lambda rows: self.lengths[rows]
        )
        self.identity = hash_of([hash_features(features), repr(task), segment.batch, segment.window, seed])

    def make(self, rows: Rows, epoch: int) -> Mapping[str, Tensor]:
        """Collate the features of rows."""
        batch: Mapping[str, Tensor] = self.task.collate(
            [self.features[row] for row in rows], seed=self.seed, epoch=epoch
        )
        return batch

    def names(self, rows: Rows) -> list[str]:
        """Return the ids of the examples."""
        return [self.features[row].key for row in rows]


class TokenStream:
    """Batches of a token file, for language modelling."""

    def __init__(self, task: Any, tokens: TokenFile, segment: Segment, seed: int) -> None:
        if task.name not in ("mlm", "clm"):
            raise TrainingError(f"a token file trains 'mlm' or 'clm', not '{task.name}'; give a source of examples")
        more = {"masking": task.masking} if task.name == "mlm" else {}
        length = segment.length or task.max_len
        plan = BatchPlan(length=length, batch=segment.batch, objective=task.name, seed=seed, **more)
        self.loader = Loader(tokens, plan)
        self.mean_length = float(plan.length)
        self.longest = plan.length
        self.arrangement = self.loader.arrangement
        self.identity = self.loader.identity

    @property
    def features(self) -> Iterator[Feature]:
        """Yield the rows in the order of the file, each made when it is asked for."""
        sequences = self.loader.sequences
        padding = BatchPadding(sequences.file.vocabulary.fill)
        for number in range(len(sequences)):
            ids, mask = sequences.batch([number])
            yield Feature(str(number), number, {"input_ids": ids[0][mask[0] > 0].astype(np.int32)}, {}, padding)

    def make(self, rows: Rows, epoch: int) -> Mapping[str, Tensor]:
        """Make a batch of packed rows."""
        return self.loader.make(rows, epoch)

    def names(self, rows: Rows) -> list[str]:
        """Return the numbers of the rows."""
        return [str(row) for row in rows]


@dataclass(frozen=True)
class RankShare:
    """The part of an update that one process computes: its batches, of at most so many rows."""

    rank: int = 0
    num_ranks: int = 1
    micro_batch: int | None = None

    def parts(self, rows: Rows) -> list[Rows]:
        """Cut the rows of an update: this process's own, in passes."""
        own = np.array_split(rows, self.num_ranks)[self.rank]
        size = self.micro_batch or max(1, own.size)
        return [own[start : start + size] for start in range(0, own.size, size)]


@dataclass(frozen=True)
class Update:
    """What one update trains on: its rows over all processes, and this process's batches."""

    position: Position
    rows: Rows
    batches: list[Mapping[str, Tensor]]


def updates(stream: Stream, share: RankShare, start: int, stop: int) -> Iterator[Update]:
    """Yield the updates from a step of the segment to another, made ahead by a thread."""
    per_epoch = stream.arrangement.steps_per_epoch

    def make(step: int) -> Update:
        epoch, place = divmod(step, per_epoch)
        rows = stream.arrangement.rows(epoch, place)
        return Update(Position(epoch, place), rows, [stream.make(part, epoch) for part in share.parts(rows)])

    waiting: deque[Future[Update]] = deque()
    pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        for step in range(start, stop):
            while len(waiting) < AHEAD and step + len(waiting) < stop:
                waiting.append(pool.submit(make, step + len(waiting)))
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def hash_features(features: Sequence[Feature]) -> str:
    """Return a hash of features: ids, and what should come out."""
    digest = hashlib.sha256()
    for feature in features:
        for part in (feature.inputs, feature.targets):
            for name, values in sorted(part.items()):
                digest.update(f"{name}:{np.shape(values)}".encode())
                digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
