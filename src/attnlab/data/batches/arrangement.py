"""The rows of each batch: shuffled by seed and epoch, and sorted by length within windows to reduce padding.

A batch depends only on the epoch and the step, so a run resumes without replaying batches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import DataError

from ..draws import draw_permutations, keys_of, name_key
from .order import Order

Rows = NDArray[np.int64]
PURPOSE = name_key("window")


class Position(NamedTuple):
    """The epoch of a batch, and its number within the epoch."""

    epoch: int = 0
    step: int = 0


def check_batch_settings(batch: int, window: int, last_batch: str) -> None:
    """Raise an error if these settings of batches are invalid."""
    if batch < 1 or window < 0:
        raise DataError(f"a batch has at least 1 row and a window at least 0 batches; got {batch}, {window}")
    if last_batch not in ("drop", "short"):
        raise DataError(f"last_batch is 'drop' or 'short', not '{last_batch}'")


@dataclass
class Arrangement:
    """The rows of every batch in every epoch."""

    num_rows: int
    batch: int
    seed: int = 0
    last_batch: Literal["drop", "short"] = "drop"
    """Whether rows that do not fill a batch are left out of the epoch or make a short batch."""
    window: int = 0
    """Number of consecutive batches whose rows are sorted by length together; 0 does not sort."""
    widths: Callable[[Rows], Rows] | None = None
    """Returns the lengths of rows; needed if `window` is not 0."""
    _last_window: tuple[Position, Rows] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_batch_settings(self.batch, self.window, self.last_batch)
        self.order = Order(self.num_rows, self.seed)
        if not self.steps_per_epoch:
            raise DataError(
                f"{self.num_rows} rows are fewer than one batch of {self.batch}; use a smaller batch or "
                "last_batch='short'"
            )

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(self.num_rows, self.batch)
        return whole + (rest > 0 and self.last_batch == "short")

    def rows(self, epoch: int, step: int) -> Rows:
        """Return the numbers of the rows of a batch."""
        if epoch < 0 or not 0 <= step < self.steps_per_epoch:
            raise DataError(f"an epoch has steps 0 to {self.steps_per_epoch - 1}; got epoch {epoch}, step {step}")
        if not self.window or self.widths is None:
            return self._take_rows(epoch, step, step + 1)
        first = step - step % self.window
        # One window serves several steps. It is cached as a single value, since threads may call this at the same time.
        window = self._last_window
        if window is None or window[0] != (epoch, first):
            window = self._last_window = Position(epoch, first), self._sort_window(epoch, first, self.widths)
        return window[1][(step - first) * self.batch :][: self.batch]

    def after(self, position: Position) -> Position:
        """Return the next position."""
        epoch, step = position
        return Position(epoch, step + 1) if step + 1 < self.steps_per_epoch else Position(epoch + 1, 0)

    def _take_rows(self, epoch: int, start: int, stop: int) -> Rows:
        return self.order.at(epoch, np.arange(start * self.batch, min(stop * self.batch, self.num_rows)))

    def _sort_window(self, epoch: int, first: int, widths: Callable[[Rows], Rows]) -> Rows:
        """Sort the rows of a window by length, then shuffle its full batches."""
        rows = self._take_rows(epoch, first, min(first + self.window, self.steps_per_epoch))
        rows = rows[np.argsort(widths(rows), kind="stable")]
        num_full = rows.size // self.batch
        full = rows[: num_full * self.batch].reshape(num_full, self.batch)
        shuffled = draw_permutations(np.atleast_1d(keys_of(PURPOSE, self.seed, epoch, first)), num_full)[0]
        return np.concatenate([full[shuffled].reshape(-1), rows[num_full * self.batch :]])
