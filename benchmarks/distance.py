"""Distances as scores: squared Euclidean through SDPA, the others without a vector kept for every pair."""

from dataclasses import replace

from attnlab.kernels.comparison import Setting, own_step, sdpa_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.table import Row, Table, Target, at_most, compared, less_by, memory_row, sizes, time_row

EUCLIDEAN = "euclidean | softmax"
OTHERS: dict[str, Target | None] = {
    "manhattan | softmax": less_by(25),
    "minkowski(p=3) | softmax": None,
    "chebyshev | softmax": less_by(25),
}
SETTING = Setting()
SMALL = Setting(batch=4)
"""Where the eager broadcast, one vector a pair, fits into memory."""


def table(
    setting: Setting = SETTING,
    length: int = 2048,
    small: Setting = SMALL,
    small_length: int = 256,
    budget: float = 8,
) -> Table:
    """Compare squared Euclidean with SDPA, the other distances with the eager broadcast."""
    rows: list[Row] = []
    for causal in (True, False):
        rows += euclidean_rows(replace(setting, causal=causal), length, budget)
    for line, target in OTHERS.items():
        rows += other_rows(line, target, small, small_length, budget)
    title = f"Distances, forward and backward: euclidean {sizes(setting, length).partition(', ')[2]}"
    return compared(f"{title}; the others {sizes(small, small_length)}", rows)


def euclidean_rows(setting: Setting, length: int, budget: float) -> list[Row]:
    """Compare squared Euclidean scores with dot products, both under softmax."""
    mechanism = Mechanism.parse(EUCLIDEAN)
    steps = {"own": own_step(mechanism, length, setting), "sdpa": sdpa_step(length, setting)}
    taken = measure(steps, budget)
    what = f"{EUCLIDEAN}, {'causal' if setting.causal else 'not causal'}"
    return [
        time_row(what, taken["own"], "SDPA", taken["sdpa"], at_most(1.15)),
        memory_row(what, taken["own"], "SDPA", taken["sdpa"]),
    ]


def other_rows(line: str, target: Target | None, setting: Setting, length: int, budget: float) -> list[Row]:
    """Compare a distance with the eager broadcast, and its memory with a single vector for every pair."""
    mechanism = Mechanism.parse(line)
    steps = {"own": own_step(mechanism, length, setting, "distance")}
    steps |= {"eager": own_step(mechanism, length, setting, "reference"), "sdpa": sdpa_step(length, setting)}
    taken = measure(steps, budget)
    own, eager = taken["own"], taken["eager"]
    all_vectors = setting.batch * setting.num_heads * length**2 * setting.head_dim * setting.dtype.itemsize
    return [
        time_row(line, own, "eager broadcast", eager, target),
        time_row(line, own, "SDPA", taken["sdpa"]),
        memory_row(line, own, "eager broadcast", eager),
        Row(line, "memory", own.memory, "one b·h·n²·d tensor", all_vectors, at_most(1) if target else None),
    ]
