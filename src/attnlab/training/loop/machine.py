"""The machine that a run is on: its threads, and a message if memory is insufficient."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from attnlab.errors import TrainingError
from attnlab.inputs import is_whole_number
from attnlab.machine import num_cores

OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "not enough memory")
"""torch's messages, depending on the device."""
OPERATIONS_PER_THREAD = 2e9
"""Operations in a pass that make one more thread worth its overhead."""


def choose_threads(threads: int | None, num_ranks: int, operations: float) -> int:
    """Return the given number of threads, else OMP_NUM_THREADS, else as many cores as a pass has work for.

    operations: of one pass; with few of them, threads cost more than they save.
    """
    if threads is not None and threads < 1:
        raise TrainingError(f"threads must be at least 1, not {threads}")
    variable = os.environ.get("OMP_NUM_THREADS", "")
    if threads is None and is_whole_number(variable) and int(variable) > 0:
        threads = int(variable)
    return threads or max(1, min(num_cores() // num_ranks, int(operations / OPERATIONS_PER_THREAD)))


@contextmanager
def explain_memory_errors() -> Iterator[None]:
    """Turn a lack of memory into one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(text in str(error).lower() for text in OUT_OF_MEMORY):
            raise
        first = str(error).splitlines()[0] if str(error) else "no memory left"
        raise TrainingError(
            f"out of memory ({first}); set a smaller micro_batch, which gives the same updates with less memory, and "
            "give the same command again: the run resumes from its last checkpoint"
        ) from error
