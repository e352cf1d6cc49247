"""Which rows make up which batch: shuffled by seed and epoch, and sorted by length in windows so that padding is rare.

A batch is a function of the epoch and its number in it, and of nothing else, so resuming costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import DataError

from ..draws import keys_of, name_key, permutations
from .order import Order

Rows = NDArray[np.int64]
PURPOSE = name_key("window")


class Position(NamedTuple):
    """Where a batch stands: its epoch, and its number in it."""

    epoch: int = 0
    step: int = 0


@dataclass
class Arrangement:
    """The rows of every batch of every epoch."""

    num_rows: int
    batch: int
    seed: int = 0
    last: Literal["drop", "short"] = "drop"
    """What becomes of rows that fill no batch: left out of this epoch, or a short batch."""
    window: int = 0
    """Batches whose rows are sorted by length among each other; 0 does not sort."""
    widths: Callable[[Rows], Rows] | None = None
    """The lengths of rows, which a window needs."""
    _kept: tuple[Position, Rows] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.batch < 1 or self.window < 0:
            raise DataError(
                f"a batch has at least 1 row and a window at least 0 batches; got {self.batch}, {self.window}"
            )
        if self.last not in ("drop", "short"):
            raise DataError(f"last is 'drop' or 'short', not '{self.last}'")
        self.order = Order(self.num_rows, self.seed)
        if not self.steps_per_epoch:
            raise DataError(
                f"{self.num_rows} rows are fewer than one batch of {self.batch}; take a smaller batch, or last='short'"
            )

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(self.num_rows, self.batch)
        return whole + (rest > 0 and self.last == "short")

    @property
    def num_dropped(self) -> int:
        """How many rows an epoch leaves out, other ones each time."""
        return self.num_rows % self.batch if self.last == "drop" else 0

    def rows(self, epoch: int, step: int) -> Rows:
        """Return the numbers of the rows of a batch."""
        if epoch < 0 or not 0 <= step < self.steps_per_epoch:
            raise DataError(
                f"an epoch has steps 0 to {self.steps_per_epoch - 1}; there came epoch {epoch}, step {step}"
            )
        if not self.window or self.widths is None:
            return self._in_order(epoch, step, step + 1)
        first = step - step % self.window
        # One window serves several steps; it is kept as one value, since threads may ask at once.
        kept = self._kept
        if kept is None or kept[0] != (epoch, first):
            kept = self._kept = Position(epoch, first), self._sorted(epoch, first, self.widths)
        return kept[1][(step - first) * self.batch :][: self.batch]

    def after(self, position: Position) -> Position:
        """Return the position that follows another."""
        epoch, step = position
        return Position(epoch, step + 1) if step + 1 < self.steps_per_epoch else Position(epoch + 1, 0)

    def _in_order(self, epoch: int, start: int, stop: int) -> Rows:
        last = min(stop * self.batch, self.num_rows)
        return self.order.at(epoch, np.arange(start * self.batch, last))

    def _sorted(self, epoch: int, first: int, widths: Callable[[Rows], Rows]) -> Rows:
        """Sort the rows of a window by length, then give its full batches a random order."""
        rows = self._in_order(epoch, first, min(first + self.window, self.steps_per_epoch))
        rows = rows[np.argsort(widths(rows), kind="stable")]
        num_full = rows.size // self.batch
        full = rows[: num_full * self.batch].reshape(num_full, self.batch)
        shuffled = permutations(np.atleast_1d(keys_of(PURPOSE, self.seed, epoch, first)), num_full)[0]
        return np.concatenate([full[shuffled].reshape(-1), rows[num_full * self.batch :]])
