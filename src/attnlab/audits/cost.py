"""Cost: the powers of the length with which time and memory grow, forward and backward, for the chosen kernel.

Reported without a bound, since timings on a busy machine are noisy. `attnlab bench` measures more accurately.
"""

from attnlab.kernels.comparison import Setting, own_step
from attnlab.kernels.measure import growth, one_thread, peak_memory, show_bytes, show_seconds, time_each, time_once

from .check import check
from .finding import Finding, FindingPart
from .subject import Mode, Subject

NAME = "cost"
SPANS: tuple[tuple[int, int], ...] = ((1024, 4096), (256, 1024), (64, 256))
"""Lengths to compare, the longest first: at short ones the cost of a call hides the growth."""

SLOW = 0.02
"""Seconds that a step of the shorter length may take."""


@check(NAME, kind="cost")
def cost_growth(subject: Subject) -> Finding:
    """Measure the powers of the length with which time and memory grow."""
    setting = Setting(num_heads=2, head_dim=32, causal=subject.causalities[-1])
    lengths = _choose_lengths(subject, setting)
    steps = {str(length): own_step(subject.mechanism, length, setting) for length in lengths}
    for step in steps.values():
        step()
    seconds = [time_each({name: step}, budget=0.2)[name] for name, step in steps.items()]
    memory = [float(peak_memory(step)) for step in steps.values()]
    times = growth((lengths[0], seconds[0]), (lengths[1], seconds[1]))
    bytes_ = growth((lengths[0], memory[0]), (lengths[1], memory[1]))
    kernel = subject.list_kernels(lengths[1], Mode(setting.causal))[0]
    figures = {"time": times, "memory": bytes_}
    return Finding(
        NAME, True, times, None,
        f"From {lengths[0]} to {lengths[1]} tokens a step forward and backward grows as n^{times:.1f} in time "
        f"and n^{bytes_:.1f} in memory (kernel {kernel}; {show_seconds(seconds[1])} and {show_bytes(memory[1])} at "
        f"{lengths[1]}).",
        "`attnlab bench`", judged=False,
        parts=tuple(FindingPart(f"power of n, {name}", figure, kernel=kernel) for name, figure in figures.items()),
        data={"lengths": list(lengths), "seconds": seconds, "bytes": memory},
    )  # fmt: skip


def _choose_lengths(subject: Subject, setting: Setting) -> tuple[int, int]:
    """Return the longest lengths whose measurement takes no more than a few seconds."""
    for span in reversed(SPANS[1:]):
        step = own_step(subject.mechanism, span[1], setting)
        step()
        with one_thread():
            if time_once(step) > SLOW:
                return span
    return SPANS[0]
