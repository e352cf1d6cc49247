"""Windows in the banded kernel beside the kernel that would compute all pairs: does the automatic choice take the
faster one? Lengths and windows lie around the bounds of `attnlab.kernels.banded`."""

from attnlab.kernels.choose import list_kernels
from attnlab.kernels.comparison import Setting, explain_choice, own_step
from attnlab.kernels.measure import measure
from attnlab.mechanisms import Mechanism
from benchmarks.table import Row, Table, at_most, compared, time_row

SETTINGS = (Setting(), Setting(batch=8, head_dim=16), Setting(causal=False), Setting(num_heads=12))
LENGTHS = (128, 256, 512, 1024)
LINES = (
    "dot | softmax | window(16)",
    "dot | softmax | window(64)",
    "dot | softmax | window(256)",
    "dot | relu(divide=n) | window(16)",
    "additive | softmax | window(16)",
)
BOUND = 1.25
"""The most that the chosen kernel may take, in times the other's: around the crossover either may be faster."""


def table(
    settings: tuple[Setting, ...] = SETTINGS, lengths: tuple[int, ...] = LENGTHS,
    lines: tuple[str, ...] = LINES, budget: float = 0.5,
) -> Table:  # fmt: skip
    """Compare the chosen kernel with the other one, forward and backward."""
    rows = [
        row
        for setting in settings
        for line in (lines if setting == settings[0] else lines[:3])
        for length in lengths
        for row in _compare_kernels(Mechanism.parse(line), length, setting, budget)
    ]
    return compared("Windows by the chosen kernel and by the other one, forward and backward", rows, [])


def _compare_kernels(mechanism: Mechanism, length: int, setting: Setting, budget: float) -> list[Row]:
    """Compare two kernels in one process; no row if every query sees all keys."""
    choice = explain_choice(mechanism, length, setting)
    if (mechanism.find_reach(setting.num_heads) or length) >= length:
        return []
    able = list_kernels(choice.request)
    other = next(name for name in able if name != "banded") if choice.kernel == "banded" else "banded"
    taken = measure({name: own_step(mechanism, length, setting, name) for name in (choice.kernel, other)}, budget)
    causal = "causal" if setting.causal else "not causal"
    sizes = f"batch {setting.batch}, {setting.num_heads} heads of {setting.head_dim}, {causal}"
    what = f"{mechanism} · {choice.kernel}, length {length}, {sizes}"
    return [time_row(what, taken[choice.kernel], other, taken[other], at_most(BOUND))]
