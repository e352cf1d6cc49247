"""The cost of a computation: its best time among its peers, and its peak memory.

Peers are timed in turn, round after round in one process and on one thread, so that a busy machine slows all of them
alike. Memory is what torch's allocator hands out; memory that C++ code allocates itself is not counted.
"""

import gc
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor
from torch.autograd.profiler import profile

Step = Callable[[], object]
"""One run of the computation that is measured."""

TrainingStep = Callable[[], tuple[Tensor | None, ...]]
"""A run forward and backward that returns the gradients."""

CPU = torch.device("cpu")
LEAST_ROUNDS = 5
MAX_ROUNDS = 200
BUDGET = 2.0
"""Seconds for timing one group of peers, unless `LEAST_ROUNDS` take longer."""


@dataclass(frozen=True)
class Measurement:
    """The best time of a step, and its peak extra memory in bytes: outputs, gradients and intermediate results."""

    seconds: float
    memory: int


def measure(steps: Mapping[str, Step], budget: float = BUDGET, device: torch.device = CPU) -> dict[str, Measurement]:
    """Run every step once so that it compiles what it needs, then measure its peak memory and its best time."""
    with one_thread():
        for step in steps.values():
            step()
        memory = {name: peak_memory(step, device) for name, step in steps.items()}
        seconds = time_each(steps, budget, device)
    return {name: Measurement(seconds[name], memory[name]) for name in steps}


def time_each(steps: Mapping[str, Step], budget: float = BUDGET, device: torch.device = CPU) -> dict[str, float]:
    """Return each step's best time in seconds, over rounds in which every step runs once."""
    with one_thread(), without_collector():
        best = {name: time_once(step, device) for name, step in steps.items()}
        rounds = int(budget / max(sum(best.values()), 1e-9))
        for _ in range(min(max(rounds, LEAST_ROUNDS), MAX_ROUNDS) - 1):
            for name, step in steps.items():
                best[name] = min(best[name], time_once(step, device))
    return best


def time_once(step: Step, device: torch.device = CPU) -> float:
    """Time one run of a step."""
    _finish(device)
    start = perf_counter()
    step()
    _finish(device)
    return perf_counter() - start


def peak_memory(step: Step, device: torch.device = CPU) -> int:
    """Return the most bytes that a step allocates at once, if it has compiled what it needs."""
    gc.collect()
    with one_thread():
        return _peak_on_cuda(step, device) if device.type == "cuda" else _peak_on_cpu(step)


def training_step(function: Callable[..., Tensor], *inputs: Tensor) -> TrainingStep:
    """Return a step that runs a function forward, and backward from a fixed random gradient to all its inputs."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    gradient = torch.randn_like(function(*leaves))

    def step() -> tuple[Tensor | None, ...]:
        # An output may have no gradient with respect to some inputs, as with argmax.
        return torch.autograd.grad(function(*leaves), leaves, gradient, allow_unused=True)

    return step


def growth(shorter: tuple[int, float], longer: tuple[int, float]) -> float:
    """Return the power of the length that a cost grows with, from two pairs of length and cost."""
    (length, cost), (more_length, more_cost) = shorter, longer
    return math.log(more_cost / cost) / math.log(more_length / length)


def show_seconds(seconds: float) -> str:
    """Write a time with three digits, in s, ms or µs."""
    unit, size = next(((u, x) for u, x in (("s", 1.0), ("ms", 1e-3)) if seconds >= x), ("µs", 1e-6))
    return f"{three_digits(seconds / size)} {unit}"


def show_bytes(num_bytes: float) -> str:
    """Write an amount of memory with three digits, in GB, MB or kB."""
    unit, size = next(((u, x) for u, x in (("GB", 1e9), ("MB", 1e6)) if num_bytes >= x), ("kB", 1e3))
    return f"{three_digits(num_bytes / size)} {unit}"


def three_digits(number: float) -> str:
    """Write a number with three digits, or with all digits before the point."""
    decimals = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:.{decimals}f}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, and restore the number of threads afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep Python's garbage collector from running during a step."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak_on_cpu(step: Step) -> int:
    # Without this the profiler writes two lines to stderr at each use; it reads the variable when it first starts.
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    with profile(profile_memory=True) as profiler:
        step()
    results = profiler.kineto_results
    assert results is not None
    changes = [event for event in results.events() if event.name() == "[memory]"]
    held = peak = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        held += change.nbytes()
        peak = max(peak, held)
    return peak


def _peak_on_cuda(step: Step, device: torch.device) -> int:
    _finish(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    _finish(device)
    return torch.cuda.max_memory_allocated(device) - before
