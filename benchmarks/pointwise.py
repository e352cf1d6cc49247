"""Weights that depend on their own score alone: no normaliser, and block by block no n × n tensor either."""

from attnlab.kernels.comparison import Setting, explain_choice, own_step, sdpa_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.table import Row, Table, at_most, compared, memory_row, sizes, time_row

LINES = ("dot | relu", "dot | sigmoid", "dot | identity")
SETTING = Setting()


def table(setting: Setting = SETTING, length: int = 2048, budget: float = 15) -> Table:
    """Compare relu, sigmoid and identity over dot with SDPA, and the kernel that auto takes for identity."""
    mechanisms = {line: Mechanism.parse(line) for line in LINES}
    last = mechanisms[LINES[-1]]
    chosen = f"{LINES[-1]} · auto ({explain_choice(last, length, setting).kernel})"
    steps = {
        f"{line} · blockwise": own_step(mechanism, length, setting, "blockwise")
        for line, mechanism in mechanisms.items()
    }
    steps[chosen] = own_step(last, length, setting)
    taken = measure({**steps, "sdpa": sdpa_step(length, setting)}, budget)
    rows: list[Row] = []
    for what in steps:
        rows.append(time_row(what, taken[what], "SDPA", taken["sdpa"], at_most(1.3)))
        rows.append(memory_row(what, taken[what], "SDPA", taken["sdpa"], at_most(2)))
    return compared(f"Pointwise weights, forward and backward: {sizes(setting, length)}", rows)
