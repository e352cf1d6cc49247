"""Batches of a token file as torch tensors. A batch is a function of the plan and its position, and of nothing else:

not of the process, the number of threads or ranks, nor of the batches before it. So resuming costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from attnlab.errors import DataError

from ..cache import hash_of
from ..tokens.tokenfile import TokenFile
from .arrangement import Arrangement, Position, Rows
from .masking import DEFAULT, IGNORED, Masking, example_keys, mask_tokens
from .sequences import RowLayout, Sequences

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class BatchPlan:
    """All that decides batches besides the tokens."""

    length: int = 128
    batch: int = 32
    """Rows of a batch over all ranks together."""
    objective: Literal["mlm", "clm"] = "mlm"
    layout: RowLayout = "packed"
    seed: int = 0
    last: Literal["drop", "short"] = "drop"
    """What becomes of rows that fill no batch: left out of this epoch, or a short batch, a rank's part of it empty."""
    window: int = 0
    """Batches whose rows are sorted by length among each other, so that padding is rare; 0 does not sort."""
    masking: Masking = DEFAULT

    def __post_init__(self) -> None:
        if self.objective not in ("mlm", "clm"):
            raise DataError(f"objective is 'mlm' or 'clm', not '{self.objective}'")
        if self.last not in ("drop", "short"):
            raise DataError(f"last is 'drop' or 'short', not '{self.last}'")
        if self.batch < 1 or self.window < 0:
            raise DataError(
                f"a batch has at least 1 row and a window at least 0 batches; got {self.batch}, {self.window}"
            )
        if self.window and self.layout == "packed":
            raise DataError("packed rows are all of one length: a window sorts padded ones; leave it 0")


class Loader:
    """Iterates over batches for ever, from `position` on; `batch` gives any of them."""

    def __init__(self, tokens: TokenFile, plan: BatchPlan, rank: int = 0, num_ranks: int = 1, workers: int = 0) -> None:
        if not 0 <= rank < num_ranks or plan.batch % num_ranks:
            raise DataError(
                f"a batch of {plan.batch} rows must divide over its {num_ranks} ranks, and rank {rank} be one of them"
            )
        self.plan = plan
        self.sequences = Sequences(tokens, plan.length, plan.layout)
        self.rank, self.num_ranks, self.workers = rank, num_ranks, workers
        self.position = Position()
        self.identity = hash_of([tokens.hash, asdict(plan)])
        if len(self.sequences) < plan.batch and plan.last == "drop":
            raise DataError(
                f"the token file gives {len(self.sequences)} rows of {plan.length}, fewer than one batch of "
                f"{plan.batch}; take a smaller batch, or last='short'"
            )
        self.arrangement = Arrangement(
            len(self.sequences), plan.batch, plan.seed, plan.last, plan.window, self.sequences.widths
        )

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has."""
        return self.arrangement.steps_per_epoch

    @property
    def num_dropped(self) -> int:
        """How many rows an epoch leaves out, other ones each time."""
        return self.arrangement.num_dropped

    def examples(self, epoch: int, step: int) -> Rows:
        """Return the numbers of the rows of a batch, over all ranks."""
        return self.arrangement.rows(epoch, step)

    def batch(self, epoch: int, step: int) -> Batch:
        """Return this rank's part of the batch at a position."""
        everyone = self.examples(epoch, step)
        share = -(-everyone.size // self.num_ranks)
        own = everyone[self.rank * share : (self.rank + 1) * share]
        # All ranks take the width of the whole batch, so that their tensors are of one shape.
        return self.make(own, epoch, self.sequences.longest(everyone) if self.plan.window else None)

    def make(self, rows: Rows, epoch: int, width: int | None = None) -> Batch:
        """Make a batch of rows; what is hidden in them depends on seed, epoch and the row alone."""
        ids, mask = self.sequences.batch(rows, width)
        if self.plan.objective == "mlm":
            keys = example_keys(self.plan.seed, epoch, rows)
            ids, labels = mask_tokens(ids, self.sequences.file.vocabulary, keys, self.plan.masking)
        else:
            labels = np.where(mask == 1, ids, IGNORED)
        made = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        return {name: torch.from_numpy(array) for name, array in made.items()}

    def __iter__(self) -> Iterator[Batch]:
        if not self.workers:
            while True:
                batch = self.batch(*self.position)
                self.position = self.after(self.position)
                yield batch
        yield from self._ahead()

    def after(self, position: Position) -> Position:
        """Return the position that follows another."""
        return self.arrangement.after(position)

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs, as plain data."""
        return {"epoch": self.position.epoch, "step": self.position.step, "identity": self.identity}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken; refuse one that was taken of other tokens or another plan."""
        if state["identity"] != self.identity:
            raise DataError(
                "this position was taken of other tokens or another plan (length, batch, seed …), where it means other "
                "batches; resume with the same ones"
            )
        self.position = Position(int(state["epoch"]), int(state["step"]))

    def _ahead(self) -> Iterator[Batch]:
        """Yield batches that threads have made before they were asked for."""
        waiting: deque[Future[Batch]] = deque()
        planned = self.position
        pool = ThreadPoolExecutor(self.workers)
        try:
            while True:
                while len(waiting) < 2 * self.workers:
                    waiting.append(pool.submit(self.batch, *planned))
                    planned = self.after(planned)
                batch = waiting.popleft().result()
                self.position = self.after(self.position)
                yield batch
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
