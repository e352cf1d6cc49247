"""Identity weights: (q·kᵀ)·v = q·(kᵀ·v), so that the time is linear in the length, causal or not."""

import ctypes
from dataclasses import replace
from itertools import pairwise

from attnlab.kernels.comparison import Setting, own_step, sdpa_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.table import Row, Table, at_most, compared, less_by, memory_row, sizes, time_row

LINE = "cosine | identity(divide=n)"
SETTING = Setting()


def table(setting: Setting = SETTING, length: int = 4096, budget: float = 10) -> Table:
    """Compare with SDPA at one length, and with itself at half the length, up to four times the length."""
    is_kept = keep_freed_memory()
    rows: list[Row] = []
    for causal, speedup in ((False, 20), (True, 5)):
        rows += rows_of(replace(setting, causal=causal), length, speedup, budget)
    title = f"Linear in the length, forward and backward: {sizes(setting, length).partition(', ')[2]}"
    note = "Freed memory stays in the process (mallopt): no length pays for pages that the system has taken back."
    return compared(title, rows, [note] if is_kept else [])


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory; else the length at which tensors begin to be unmapped looks much slower.

    This cannot be undone and makes eager attention faster than it is otherwise, so tables that use it are the last.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    trim_threshold, mmap_threshold = (-1, 2**31 - 1), (-3, 2**30)
    return all(mallopt(*option) for option in (trim_threshold, mmap_threshold))


def rows_of(setting: Setting, length: int, speedup: float, budget: float) -> list[Row]:
    """Compare in one direction, or in both."""
    what = f"{LINE}, {'causal' if setting.causal else 'not causal'}"
    mechanism, lengths = Mechanism.parse(LINE), (length // 2, length, 2 * length, 4 * length)
    steps = {f"own {n}": own_step(mechanism, n, setting) for n in lengths}
    taken = measure({**steps, "sdpa": sdpa_step(length, setting)}, budget)
    own, sdpa = taken[f"own {length}"], taken["sdpa"]
    rows = [
        time_row(what, own, "SDPA", sdpa, less_by(speedup)),
        memory_row(what, own, "SDPA", sdpa),
    ]
    for half, double in pairwise(lengths):
        other = taken[f"own {half}"]
        peer = f"itself, length {half}"
        rows.append(time_row(f"{what}, length {double}", taken[f"own {double}"], peer, other, at_most(2.2)))
    return rows
