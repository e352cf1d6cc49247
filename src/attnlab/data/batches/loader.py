"""Batches of a token file as torch tensors.

A batch depends only on the plan and its position, not on the process, the number of threads or ranks, or earlier
batches, so a run resumes without replaying batches.
"""

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
from .arrangement import Arrangement, Position, Rows, check_batch_settings
from .masking import DEFAULT, IGNORED, Masking, example_keys, mask_tokens
from .sequences import RowLayout, Sequences

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class BatchPlan:
    """All settings that determine the batches of a token file."""

    length: int = 128
    batch: int = 32
    """Rows of a batch, summed over all ranks."""
    objective: Literal["mlm", "clm"] = "mlm"
    layout: RowLayout = "packed"
    seed: int = 0
    last_batch: Literal["drop", "short"] = "drop"
    """Whether an incomplete last batch is dropped or kept; a rank's part of it may be empty."""
    window: int = 0
    """Number of consecutive batches whose rows are sorted by length together, to reduce padding; 0 does not sort."""
    masking: Masking = DEFAULT

    def __post_init__(self) -> None:
        if self.objective not in ("mlm", "clm"):
            raise DataError(f"objective must be 'mlm' or 'clm', not '{self.objective}'")
        check_batch_settings(self.batch, self.window, self.last_batch)
        if self.window and self.layout != "padded":
            raise DataError(f"window={self.window} sorts rows by length, and packed rows have one length; set window=0")


class Loader:
    """Iterates over batches indefinitely from `position`; `batch` gives random access."""

    def __init__(self, tokens: TokenFile, plan: BatchPlan, rank: int = 0, num_ranks: int = 1, workers: int = 0) -> None:
        if not 0 <= rank < num_ranks or plan.batch % num_ranks:
            raise DataError(
                f"rank {rank} of {num_ranks}, batch {plan.batch}: the rank must be 0 … {num_ranks - 1}, and the batch "
                "a multiple of the number of ranks"
            )
        self.plan = plan
        self.sequences = Sequences(tokens, plan.length, plan.layout, plan.objective == "clm")
        self.rank, self.num_ranks, self.workers = rank, num_ranks, workers
        self.position = Position()
        settings = asdict(plan)
        settings["last"] = settings.pop("last_batch")  # the name under which stored identities were computed
        if self.sequences.prefix != tokens.vocabulary.prefix:
            settings["prefix"] = self.sequences.prefix
        self.identity = hash_of([tokens.hash, settings])
        if len(self.sequences) < plan.batch and plan.last_batch == "drop":
            raise DataError(
                f"the token file gives {len(self.sequences)} rows of {plan.length}, fewer than one batch of "
                f"{plan.batch}; use a smaller batch or last_batch='short'"
            )
        self.arrangement = Arrangement(
            len(self.sequences), plan.batch, plan.seed, plan.last_batch, plan.window, self.sequences.widths
        )
        self.steps_per_epoch = self.arrangement.steps_per_epoch

    def batch(self, epoch: int, step: int) -> Batch:
        """Return this rank's part of the batch at a position."""
        rows = self.arrangement.rows(epoch, step)
        share = -(-rows.size // self.num_ranks)
        # All ranks use the width of the whole batch, so that their tensors have the same shape.
        width = self.sequences.longest(rows) if self.plan.window else None
        return self.make(rows[self.rank * share : (self.rank + 1) * share], epoch, width)

    def make(self, rows: Rows, epoch: int, width: int | None = None) -> Batch:
        """Make a batch of rows; the masked tokens of a row depend only on the seed, the epoch and the row."""
        ids, mask = self.sequences.batch(rows, width)
        if self.plan.objective == "mlm":
            keys = example_keys(self.plan.seed, epoch, rows)
            ids, labels = mask_tokens(ids, self.sequences.file.vocabulary, keys, self.plan.masking)
        else:
            labels = np.where(mask == 1, ids, IGNORED)
        arrays = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches, computed ahead by threads if there are workers."""
        waiting: deque[Future[Batch]] = deque()
        planned = self.position
        pool = ThreadPoolExecutor(self.workers) if self.workers else None
        try:
            while True:
                while pool and len(waiting) < 2 * self.workers:
                    waiting.append(pool.submit(self.batch, *planned))
                    planned = self.arrangement.after(planned)
                batch = waiting.popleft().result() if pool else self.batch(*self.position)
                self.position = self.arrangement.after(self.position)
                yield batch
        finally:
            if pool:
                pool.shutdown(wait=True, cancel_futures=True)

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs, as plain data."""
        return {"epoch": self.position.epoch, "step": self.position.step, "identity": self.identity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; a state of other tokens or another plan is an error."""
        if state["identity"] != self.identity:
            raise DataError(
                "this position belongs to other tokens or another plan (length, batch, seed …), whose batches differ; "
                "resume with the same tokens and plan"
            )
        self.position = Position(int(state["epoch"]), int(state["step"]))
