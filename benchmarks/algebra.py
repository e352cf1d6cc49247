"""Stages of today's models beside torch's full causal attention: what each saves, or costs; and what fades or corrects
the past under identity weights beside itself at half the length."""

from itertools import pairwise

from attnlab.kernels.comparison import Setting, explain_choice, own_step, sdpa_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.linear import keep_freed_memory
from benchmarks.table import Row, Table, at_most, compared, sizes, time_row

SETTING = Setting()
LENGTH = 8192
SHORT = 2048
TARGETS: dict[str, float | None] = {
    "dot | softmax | window(256)": 1 / 8,
    "dot | softmax | window(1024)": None,
    "dot | softmax | chunk(256)": None,
    "dot | relu(divide=n) | window(256)": None,
}
"""The most that each line may take at `LENGTH`, in times SDPA's; None: no target."""
SHORT_TARGETS: dict[str, float | None] = {
    "dot | softmax | forget": 1.3,
    "dot | softmax | differential": 2.2,
    "dot | softmax | norm(rms, gain=channel)": None,
    "dot | softmax | gate(per=channel)": None,
    "dot | softmax | exclusive(alpha=1)": None,
    "dot | softmax | talking_heads": None,
}
"""The same at `SHORT`."""
LINEAR = (
    "dot | identity | forget",
    "dot | identity | forget(per=channel)",
    "dot | identity(divide=sum) | feature(elu1)",
    "dot(scale=1) | identity | norm(l2) | delta",
    "dot(scale=1) | identity | forget | norm(l2) | delta",
)
"""Lines whose time is linear in the length."""
DOUBLING = 2.2


def table(
    setting: Setting = SETTING, length: int = LENGTH, short: int = SHORT, budget: float = 60, num_doublings: int = 3
) -> Table:
    """Compare lines with SDPA over all earlier tokens, forward and backward."""
    rows = _compare_with_sdpa(TARGETS, setting, length, budget) + _compare_with_sdpa(SHORT_TARGETS, setting, short, 20)
    is_kept = keep_freed_memory()
    lengths = [short * 2**power for power in range(num_doublings + 1)]
    for line in LINEAR:
        rows += _compare_lengths(line, setting, lengths, budget / 4)
    title = f"Stages of today's models, forward and backward: {sizes(setting, length)}"
    note = "From the lines with identity weights on, freed memory stays in the process (mallopt), as in `linear`."
    return compared(f"{title}, or as said", rows, [note] if is_kept else [])


def _compare_with_sdpa(lines: dict[str, float | None], setting: Setting, length: int, budget: float) -> list[Row]:
    mechanisms = {line: Mechanism.parse(line) for line in lines}
    steps = {line: own_step(mechanism, length, setting) for line, mechanism in mechanisms.items()}
    taken = measure({**steps, "sdpa": sdpa_step(length, setting)}, budget)
    rows: list[Row] = []
    for line, bound in lines.items():
        kernel = explain_choice(mechanisms[line], length, setting).kernel
        target = None if bound is None else at_most(bound)
        what = f"{line} · {kernel}, length {length}"
        rows.append(time_row(what, taken[line], "SDPA", taken["sdpa"], target))
    return rows


def _compare_lengths(line: str, setting: Setting, lengths: list[int], budget: float) -> list[Row]:
    """Compare a line with SDPA at the second length, and with itself at half of each length."""
    mechanism = Mechanism.parse(line)
    steps = {str(n): own_step(mechanism, n, setting) for n in lengths}
    taken = measure({**steps, "sdpa": sdpa_step(lengths[1], setting)}, budget)
    kernel = explain_choice(mechanism, lengths[1], setting).kernel
    what = f"{line} · {kernel}, length"
    rows = [time_row(f"{what} {lengths[1]}", taken[str(lengths[1])], "SDPA", taken["sdpa"], at_most(1))]
    for half, double in pairwise(lengths):
        rows.append(
            time_row(
                f"{what} {double}", taken[str(double)], f"itself, length {half}", taken[str(half)], at_most(DOUBLING)
            )
        )
    return rows
