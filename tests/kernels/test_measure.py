"""Costs that are known beforehand come out as they are: bytes to the byte, times in their order."""

import gc
import time

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.kernels import measure
from attnlab.kernels.measure import Measurement, one_thread, peak_memory, time_each, training_step

MB = 2**20


def hold(num_bytes: int) -> Tensor:
    return torch.empty(num_bytes, dtype=torch.uint8)


def test_memory_held_at_once_adds_up() -> None:
    def step() -> None:
        first = hold(3 * MB)
        second = hold(2 * MB)
        del first, second
        hold(4 * MB)

    assert peak_memory(step) == 5 * MB


def test_memory_freed_before_more_is_taken_does_not_add_up() -> None:
    def step() -> None:
        for _ in range(10):
            hold(MB)

    assert peak_memory(step) == MB


def test_what_was_there_before_does_not_count() -> None:
    kept = hold(8 * MB)
    assert peak_memory(lambda: kept.zero_()) == 0


def test_an_out_buffer_counts_once() -> None:
    x = torch.ones(512, 512)

    def step() -> None:
        out = torch.empty(512, 512)
        torch.add(x, x, out=out)
        torch.add(out, x, out=out)

    assert peak_memory(step) == MB


def test_the_backward_pass_counts() -> None:
    x = torch.ones(512, 512)
    # relu keeps its output, then the gradient joins it; the gradient that comes in is there from the start.
    assert peak_memory(training_step(torch.relu, x)) == 2 * MB


def test_scaled_dot_product_attention_is_seen_whole() -> None:
    q, k, v = torch.randn(3, 1, 4, 512, 64)
    step = training_step(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    output_and_gradients = 4 * q.numel() * q.element_size()
    all_pairs = 4 * 512 * 512 * q.element_size()
    assert output_and_gradients < peak_memory(step) < output_and_gradients + all_pairs / 2


def test_the_profiler_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    peak_memory(lambda: hold(MB))
    assert capfd.readouterr() == ("", "")


def test_the_slower_step_takes_longer() -> None:
    seconds = time_each({"slow": lambda: time.sleep(0.01), "quick": lambda: None}, budget=0.1)
    assert seconds["slow"] >= 0.01 > seconds["quick"] >= 0


@pytest.mark.parametrize(("budget", "least"), [(0.0, measure.LEAST_ROUNDS), (0.2, 50)])
def test_steps_take_turns(budget: float, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(x * 0.001 for x in range(10_000))
    monkeypatch.setattr(measure, "perf_counter", lambda: next(ticks))
    taken: list[str] = []
    steps = {name: lambda name=name: taken.append(name) for name in "abc"}
    assert time_each(steps, budget) == pytest.approx(dict.fromkeys("abc", 0.001))
    assert len(taken) % 3 == 0
    assert "".join(taken) == "abc" * (len(taken) // 3)
    assert len(taken) // 3 >= least


def test_a_measurement_runs_on_one_thread_and_restores_what_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen: list[int] = []
        measure.measure({"step": lambda: seen.append(torch.get_num_threads())}, budget=0)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError), one_thread():
            raise ZeroDivisionError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_collector_runs_again_afterwards() -> None:
    seen: list[bool] = []
    time_each({"step": lambda: seen.append(gc.isenabled())}, budget=0)
    assert not any(seen)
    assert gc.isenabled()


def test_measuring_runs_a_step_before_its_memory_is_taken() -> None:
    compiled: list[Tensor] = []

    def step() -> None:
        if not compiled:
            compiled.append(hold(8 * MB))
        hold(MB)

    taken = measure.measure({"step": step}, budget=0)["step"]
    assert taken == Measurement(taken.seconds, MB)
    assert taken.seconds > 0


def test_a_training_step_returns_the_gradient_of_every_input() -> None:
    x, y = torch.ones(3), torch.full((3,), 2.0)
    step = training_step(lambda x, y: x * y.detach(), x, y)
    to_x, to_y = step()
    again, _ = step()
    assert to_x is not None
    assert again is not None
    assert to_y is None
    assert torch.equal(to_x, again)
    assert not x.requires_grad


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(2e-6, "2.00 µs"), (0.0123456, "12.3 ms"), (0.9999, "1000 ms"), (1.5, "1.50 s"), (1234.5, "1234 s")],
)
def test_times_are_shown_with_three_digits(seconds: float, shown: str) -> None:
    assert measure.show_seconds(seconds) == shown


@pytest.mark.parametrize(("num_bytes", "shown"), [(0, "0.00 kB"), (999_600, "1000 kB"), (4.2e9, "4.20 GB")])
def test_memory_is_shown_with_three_digits(num_bytes: float, shown: str) -> None:
    assert measure.show_bytes(num_bytes) == shown


@pytest.mark.parametrize(("length", "cost", "power"), [(512, 2.0, 1), (512, 4.0, 2), (1024, 4.0, 1)])
def test_growth_is_the_power_of_the_length(length: int, cost: float, power: float) -> None:
    assert measure.growth((256, 1.0), (length, cost)) == pytest.approx(power)
