"""How time and memory grow with the length: 1 is linear, 2 quadratic."""

from collections.abc import Sequence

from attnlab.kernels.comparison import Setting, explain_choice, own_step
from attnlab.kernels.measure import Measurement, growth, measure, show_bytes, show_seconds
from attnlab.mechanisms import Mechanism
from benchmarks.table import NOTHING, Table

NAMES = (
    "baseline", "relu-attention", "sigmoid-attention", "cosine-linear", "additive", "l1-attention",
    "l2-attention",
)  # fmt: skip
SETTING = Setting()
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
COLUMNS = ("mechanism", "kernel", "length", "time", "grows as", "memory", "grows as")
LIMIT = 10.0
"""Seconds that one step may take, foretold as four times the step at half the length."""


def table(
    setting: Setting = SETTING, lengths: Sequence[int] = LENGTHS, budget: float = 4, limit: float = LIMIT
) -> Table:
    """Measure all mechanisms together, one length after another, and leave out those that become too slow."""
    mechanisms = {name: Mechanism.parse(name) for name in NAMES}
    taken: dict[str, dict[int, Measurement]] = {name: {} for name in NAMES}
    notes: list[str] = []
    for length in lengths:
        for name, found in taken.items():
            foretold = next(reversed(found.values())).seconds * 4 if found else 0
            if name in mechanisms and foretold > limit:
                del mechanisms[name]
                notes.append(f"{name} stops before length {length}: a step would take {show_seconds(foretold)}.")
        steps = {name: own_step(mechanism, length, setting) for name, mechanism in mechanisms.items()}
        for name, measurement in measure(steps, budget).items():
            taken[name][length] = measurement
    rows = [row for name, found in taken.items() for row in rows_of(name, found, setting)]
    causal = "causal" if setting.causal else "not causal"
    title = f"Growth with the length, forward and backward: {causal}, batch {setting.batch}, "
    return Table(f"{title}{setting.num_heads} heads of {setting.head_dim}", COLUMNS, rows, notes)


def rows_of(name: str, found: dict[int, Measurement], setting: Setting) -> list[tuple[str, ...]]:
    """Write one mechanism's rows, each with its growth since the one above."""
    rows: list[tuple[str, ...]] = []
    before: tuple[int, Measurement] | None = None
    for length, taken in found.items():
        powers = (NOTHING, NOTHING)
        if before is not None:
            shorter, earlier = before
            time = growth((shorter, earlier.seconds), (length, taken.seconds))
            memory = growth((shorter, earlier.memory), (length, taken.memory))
            powers = (f"n^{time:.2f}", f"n^{memory:.2f}")
        kernel = explain_choice(Mechanism.parse(name), length, setting).kernel
        time_cells = (show_seconds(taken.seconds), powers[0])
        rows.append((name, kernel, str(length), *time_cells, show_bytes(taken.memory), powers[1]))
        before = (length, taken)
    return rows
