"""Stages of today's models beside torch's full causal attention: what each saves, or costs."""

from attnlab.kernels.comparison import Setting, explain_choice, own_step, sdpa_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.table import Row, Table, at_most, compared, sizes, time_row

SETTING = Setting()
LENGTH = 8192
TARGETS: dict[str, float | None] = {
    "dot | softmax | window(256)": 1 / 8,
    "dot | softmax | window(1024)": None,
    "dot | softmax | chunk(256)": None,
    "dot | relu(divide=n) | window(256)": None,
}
"""The most that each line may take at `LENGTH`, in times SDPA's; None: no target."""


def table(setting: Setting = SETTING, length: int = LENGTH, budget: float = 60) -> Table:
    """Compare lines with SDPA over all earlier tokens, forward and backward."""
    mechanisms = {line: Mechanism.parse(line) for line in TARGETS}
    steps = {line: own_step(mechanism, length, setting) for line, mechanism in mechanisms.items()}
    taken = measure({**steps, "sdpa": sdpa_step(length, setting)}, budget)
    rows: list[Row] = []
    for line, bound in TARGETS.items():
        kernel = explain_choice(mechanisms[line], length, setting).kernel
        target = None if bound is None else at_most(bound)
        rows.append(time_row(f"{line} · {kernel}", taken[line], "SDPA", taken["sdpa"], target))
    return compared(f"Stages of today's models, forward and backward: {sizes(setting, length)}", rows)
