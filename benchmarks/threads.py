"""The compiled loops on two threads: torch's own, which wait for the next tile instead of being started for each."""

import os

import torch

from attnlab.kernels.comparison import Setting, own_step
from attnlab.kernels.measure import LEAST_ROUNDS, Step, time_once, without_collector
from attnlab.mechanisms import Mechanism
from benchmarks.table import Row, Table, Target, compared, less_by, sizes

LINES = ("additive | softmax", "manhattan | softmax", "chebyshev | softmax")
SETTING = Setting()
TARGET = less_by(1.6)


def table(setting: Setting = SETTING, length: int = 1024, num_rounds: int = 20) -> Table:
    """Compare two threads with one; without a target where there is one processor only."""
    target = TARGET if len(os.sched_getaffinity(0)) > 1 else None
    rows = [thread_row(line, setting, length, num_rounds, target) for line in LINES]
    notes = ["Both threads need a free processor: on a busy machine set OMP_WAIT_POLICY=passive."]
    return compared(f"Two threads, forward and backward: {sizes(setting, length)}", rows, notes)


def thread_row(line: str, setting: Setting, length: int, num_rounds: int, target: Target | None) -> Row:
    """Compare the best times of a step on two threads and on one."""
    step = own_step(Mechanism.parse(line), length, setting)
    best = {1: float("inf"), 2: float("inf")}
    before = torch.get_num_threads()
    try:
        with without_collector():
            for _ in range(max(num_rounds, LEAST_ROUNDS)):
                for num_threads in best:
                    best[num_threads] = min(best[num_threads], _time_on(num_threads, step))
    finally:
        torch.set_num_threads(before)
    return Row(f"{line}, 2 threads", "time", best[2], "1 thread", best[1], target)


def _time_on(num_threads: int, step: Step) -> float:
    torch.set_num_threads(num_threads)
    return time_once(step)
