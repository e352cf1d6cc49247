"""Batches of one segment: features of a task, rows of a token file, or new rows of a probe for every update.

A batch is a function of its position.
"""

import dataclasses
import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from torch import Tensor

from attnlab.data import Arrangement, BatchPlan, Loader, Position, Probe, Sequences, TokenFile
from attnlab.data.batches.arrangement import Rows
from attnlab.data.batches.sequences import RowLayout
from attnlab.data.cache import hash_of
from attnlab.errors import TrainingError
from attnlab.tasks.batch import BatchPadding, Feature

from ..spec import LANGUAGE, Segment

AHEAD = 2
"""Updates whose batches are made in advance."""
NUM_FRESH_ROWS = 1 << 40
"""Rows of a fresh stream per seed, each drawn at most once; more than any run needs."""
NUM_SHOWN = 1024
"""Rows of a fresh stream that trivial strategies may learn from, and that identify the stream."""


class FeatureStream:
    """Batches of a task's features."""

    def __init__(self, task: Any, features: Sequence[Feature], segment: Segment, seed: int) -> None:
        if not features:
            raise TrainingError("there is nothing to train on: the task made no features from its data")
        self.task, self.features, self.seed = task, features, seed
        self.lengths = np.array([len(feature) for feature in features])
        self.mean_length = float(self.lengths.mean())
        self.longest = int(self.lengths.max())
        last_batch: Literal["drop", "short"] = "drop" if len(features) >= segment.batch else "short"
        self.arrangement = Arrangement(
            len(features), segment.batch, seed, last_batch, segment.window, lambda rows: self.lengths[rows]
        )
        self.identity = hash_of([hash_features(features), repr(task), segment.batch, segment.window, seed])

    def make(self, rows: Rows, epoch: int) -> Mapping[str, Tensor]:
        """Collate the features of rows."""
        features = [self.features[row] for row in rows]
        batch: Mapping[str, Tensor] = self.task.collate(features, seed=self.seed, epoch=epoch)
        return batch

    def names(self, rows: Rows) -> list[str]:
        """Return the ids of the examples."""
        return [self.features[row].key for row in rows]


class TokenStream:
    """Batches of a token file, for language modelling."""

    def __init__(
        self, task: Any, tokens: TokenFile, segment: Segment, seed: int, layout: RowLayout = "packed"
    ) -> None:  # fmt: skip
        if task.name not in LANGUAGE:
            raise TrainingError(f"a token file trains 'mlm' or 'clm', not '{task.name}'; give a source of examples")
        more = {"masking": task.masking} if task.name == "mlm" else {}
        length = segment.length or task.max_len
        is_short = len(Sequences(tokens, length, layout, task.name == "clm")) < segment.batch
        last_batch: Literal["drop", "short"] = "short" if is_short else "drop"
        plan = BatchPlan(
            length=length, batch=segment.batch, objective=task.name, layout=layout, seed=seed, last_batch=last_batch,
            **more,
        )  # fmt: skip
        self.loader = Loader(tokens, plan)
        self.mean_length, self.longest = float(plan.length), plan.length
        self.arrangement, self.identity = self.loader.arrangement, self.loader.identity

    @property
    def features(self) -> Iterator[Feature]:
        """Yield the rows in the order of the file, without overlaps."""
        sequences = dataclasses.replace(self.loader.sequences, layout="packed")
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


class FreshStream:
    """New rows of a probe for every update, a function of the seed and the update's number."""

    def __init__(self, task: Any, probe: Probe, segment: Segment, seed: int) -> None:
        if segment.steps is None:
            raise TrainingError(f"segment '{segment.name}' counts epochs, and fresh rows have no epochs; give it steps")
        self.task, self.probe, self.seed = task, probe, seed
        self.mean_length, self.longest = float(probe.length), probe.length
        self.arrangement = Arrangement(NUM_FRESH_ROWS, segment.batch, seed)
        self.identity = hash_of([hash_features(list(self.features)), repr(probe), repr(task), segment.batch, seed])

    @property
    def features(self) -> Iterator[Feature]:
        """Yield rows of the training distribution."""
        yield from self.task.generate_features(self.probe, range(NUM_SHOWN), "train")

    def make(self, rows: Rows, epoch: int) -> Mapping[str, Tensor]:
        """Generate rows."""
        batch: Mapping[str, Tensor] = self.task.collate(self.task.generate_features(self.probe, rows, "train"))
        return batch

    def names(self, rows: Rows) -> list[str]:
        """Return the numbers of the rows, from which each can be generated again."""
        return [str(row) for row in rows]


Stream = FeatureStream | TokenStream | FreshStream
"""The training data of a segment."""


@dataclasses.dataclass(frozen=True)
class RankShare:
    """The part of an update that one process computes, in passes of at most `micro_batch` rows."""

    rank: int = 0
    num_ranks: int = 1
    micro_batch: int | None = None

    def parts(self, rows: Rows) -> list[Rows]:
        """Return this process's rows of an update, split into passes."""
        share = np.array_split(rows, self.num_ranks)[self.rank]
        size = self.micro_batch or max(1, share.size)
        return [share[start : start + size] for start in range(0, share.size, size)]


@dataclasses.dataclass(frozen=True)
class Update:
    """The data of one update: its rows over all processes, and this process's batches."""

    position: Position
    rows: Rows
    batches: list[Mapping[str, Tensor]]


def make_updates(stream: Stream, share: RankShare, start: int, stop: int) -> Iterator[Update]:
    """Yield the updates of a segment from step `start` to `stop`; a thread makes them in advance."""
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
    """Return a hash of the inputs and targets of features."""
    digest = hashlib.sha256()
    for feature in features:
        for part in (feature.inputs, feature.targets):
            for name, values in sorted(part.items()):
                digest.update(f"{name}:{np.shape(values)}".encode())
                digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
