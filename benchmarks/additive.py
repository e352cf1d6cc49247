"""Additive scores: eager PyTorch computes, and keeps, a tanh for every pair and hidden unit."""

from attnlab.kernels.comparison import Setting, own_step, sdpa_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.table import Table, at_most, compared, less_by, memory_row, sizes, time_row

LINE = "additive | softmax"
SETTING = Setting(batch=32, num_heads=4, head_dim=32)


def table(setting: Setting = SETTING, length: int = 100, budget: float = 10) -> Table:
    """Compare the additive kernel with SDPA and with eager tanh."""
    mechanism = Mechanism.parse(LINE)
    taken = measure(
        {
            "own": own_step(mechanism, length, setting, "additive"),
            "sdpa": sdpa_step(length, setting),
            "eager": own_step(mechanism, length, setting, "reference"),
        },
        budget,
    )
    own, sdpa, eager = taken["own"], taken["sdpa"], taken["eager"]
    rows = [
        time_row(LINE, own, "SDPA", sdpa, at_most(2.0)),
        time_row(LINE, own, "eager tanh", eager, less_by(20)),
        memory_row(LINE, own, "eager tanh", eager, less_by(10)),
        memory_row(LINE, own, "SDPA", sdpa),
    ]
    return compared(f"Additive scores, forward and backward: {sizes(setting, length)}", rows)
