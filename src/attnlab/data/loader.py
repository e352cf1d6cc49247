"""Batches of a token file as torch tensors. A batch is a function of the plan and its position, and of nothing else:

not of the process, the number of threads or ranks, nor of the batches before it. So resuming costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.errors import DataError

from .cache import hash_of
from .draws import keys_of, name_key, permutations
from .masking import DEFAULT, IGNORED, Masking, example_keys, mask_tokens
from .order import Order
from .sequences import RowLayout, Sequences
from .tokenfile import TokenFile

Batch = dict[str, Tensor]
PURPOSE = name_key("window")


class Position(NamedTuple):
    """Where a batch stands: its epoch, and its number in it."""

    epoch: int = 0
    step: int = 0


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
        for what, value, known in (
            ("objective", self.objective, ("mlm", "clm")),
            ("last", self.last, ("drop", "short")),
        ):
            if value not in known:
                raise DataError(f"{what} is {' or '.join(map(repr, known))}, not '{value}'")
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
        self.order = Order(len(self.sequences), plan.seed)
        self.rank, self.num_ranks, self.workers = rank, num_ranks, workers
        self.position = Position()
        self.identity = hash_of([tokens.hash, asdict(plan)])
        self._window: tuple[tuple[int, int], NDArray[np.int64]] | None = None
        if not self.steps_per_epoch:
            raise DataError(
                f"the token file gives {len(self.sequences)} rows of {plan.length}, fewer than one batch of "
                f"{plan.batch}; take a smaller batch, or last='short'"
            )

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(len(self.sequences), self.plan.batch)
        return whole + (rest > 0 and self.plan.last == "short")

    @property
    def num_dropped(self) -> int:
        """How many rows an epoch leaves out, other ones each time."""
        return len(self.sequences) % self.plan.batch if self.plan.last == "drop" else 0

    def examples(self, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the numbers of the rows of a batch, over all ranks."""
        if epoch < 0 or not 0 <= step < self.steps_per_epoch:
            raise DataError(
                f"an epoch has steps 0 to {self.steps_per_epoch - 1}; there came epoch {epoch}, step {step}"
            )
        if not self.plan.window:
            return self._in_order(epoch, step, step + 1)
        first = step - step % self.plan.window
        # One window serves several steps; it is kept as one value, since threads may ask at once.
        kept = self._window
        if kept is None or kept[0] != (epoch, first):
            kept = self._window = (epoch, first), self._sorted_window(epoch, first)
        return kept[1][(step - first) * self.plan.batch :][: self.plan.batch]

    def batch(self, epoch: int, step: int) -> Batch:
        """Return this rank's part of the batch at a position."""
        everyone = self.examples(epoch, step)
        share = -(-everyone.size // self.num_ranks)
        own = everyone[self.rank * share : (self.rank + 1) * share]
        # All ranks take the width of the whole batch, so that their tensors are of one shape.
        width = self.sequences.longest(everyone) if self.plan.window else None
        ids, mask = self.sequences.batch(own, width)
        if self.plan.objective == "mlm":
            keys = example_keys(self.plan.seed, epoch, own)
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
        epoch, step = position
        return Position(epoch, step + 1) if step + 1 < self.steps_per_epoch else Position(epoch + 1, 0)

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

    def _in_order(self, epoch: int, start: int, stop: int) -> NDArray[np.int64]:
        last = min(stop * self.plan.batch, len(self.sequences))
        return self.order.at(epoch, np.arange(start * self.plan.batch, last))

    def _sorted_window(self, epoch: int, first: int) -> NDArray[np.int64]:
        """Sort the rows of a window by length, then give its full batches a random order."""
        stop = min(first + self.plan.window, self.steps_per_epoch)
        rows = self._in_order(epoch, first, stop)
        rows = rows[np.argsort(self.sequences.widths(rows), kind="stable")]
        num_full = rows.size // self.plan.batch
        full = rows[: num_full * self.plan.batch].reshape(num_full, self.plan.batch)
        shuffled = permutations(np.atleast_1d(keys_of(PURPOSE, self.plan.seed, epoch, first)), num_full)[0]
        return np.concatenate([full[shuffled].reshape(-1), rows[num_full * self.plan.batch :]])
