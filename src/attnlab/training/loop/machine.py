"""The machine a run is on: how many threads it takes, and what is said when memory does not suffice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from attnlab.errors import TrainingError
from attnlab.machine import num_cores

FULL = ("can't allocate memory", "out of memory", "not enough memory")
"""How torch says it, on one device or another."""


WORTH = 2e9
"""Operations of a pass that one more thread pays for."""


def choose_threads(asked: int | None, num_ranks: int, operations: float) -> int:
    """Return how many threads to compute with: those asked for, or as many cores as a pass has work for.

    Threads that wait for one another cost more than they bring where there is little to do. OMP_NUM_THREADS is
    somebody's word too, and is kept. operations: of one pass.
    """
    if asked is not None and asked < 1:
        raise TrainingError(f"threads are at least 1, not {asked}")
    said = os.environ.get("OMP_NUM_THREADS", "")
    if asked is None and said.isdigit() and int(said) > 0:
        asked = int(said)
    return asked or max(1, min(num_cores() // num_ranks, int(operations / WORTH)))


@contextmanager
def whole_memory() -> Iterator[None]:
    """Turn a lack of memory into one sentence; a run's checkpoints are on the disk and stay as they are."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(word in str(error).lower() for word in FULL):
            raise
        first = str(error).splitlines()[0] if str(error) else "no memory left"
        raise TrainingError(
            f"memory did not suffice ({first}); take a smaller micro_batch, which gives the same updates with less at "
            "a time, and give the same command again: the run goes on from its last checkpoint"
        ) from error
