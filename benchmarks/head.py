"""The loss of a vocabulary head beside its matrix products alone, and these beside the peak: why a step is below it.

A small model has few channels, so that the products of its head are thin: they are bound by reading and writing their
long sides, not by arithmetic.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.kernels.measure import measure, one_thread
from attnlab.tasks.crossentropy import compute_summed_loss
from benchmarks.table import Row, Table, compared, time_row
from benchmarks.training import measure_peak

SIZES = {
    "mini-GPT": (873, 48, 26_604),
    "MLM": (920, 256, 30_522),
}
"""Labelled rows, channels and vocabulary of a step of the runs in `training`."""
ROWS, WIDTH = 291, 1800
"""Rows and tokens of a tile, about those of the loss."""


def table(sizes: dict[str, tuple[int, int, int]] = SIZES, budget: float = 15) -> Table:
    """Compare the loss with its three products, tile by tile, and both with the peak of one large product."""
    rows: list[Row] = []
    with one_thread():
        peak = measure_peak(torch.float32)
        for name, (num_rows, channels, vocab) in sizes.items():
            generator = torch.Generator().manual_seed(0)
            states = torch.randn(num_rows, channels, generator=generator)
            weight = torch.randn(vocab, channels, generator=generator) / channels**0.5
            labels = torch.randint(vocab, (num_rows,), generator=generator)
            steps = {"loss": _make_loss(states, weight, labels), "products": _make_products(states, weight)}
            taken = measure(steps, budget)
            operations = 6 * num_rows * channels * vocab
            what = f"head of {name}, {num_rows} × {channels} × {vocab:,}"
            rows += [
                time_row(f"{what}, loss", taken["loss"], "its products alone", taken["products"]),
                Row(f"{what}, loss", "speed", operations / taken["loss"].seconds, "the peak", peak),
                Row(f"{what}, products", "speed", operations / taken["products"].seconds, "the peak", peak),
            ]
    return compared("Vocabulary heads, forward and backward, fp32, one thread", rows)


def _make_loss(states: Tensor, weight: Tensor, labels: Tensor) -> Callable[[], object]:
    leaves = states.clone().requires_grad_(), weight.clone().requires_grad_()

    def step() -> object:
        return torch.autograd.grad(compute_summed_loss(*leaves, None, labels), leaves)

    return step


def _make_products(states: Tensor, weight: Tensor) -> Callable[[], object]:
    """Return the products of the logits, of the states' gradient and of the weight's, in tiles, and nothing else."""
    gradient = torch.zeros_like(weight)
    tile = torch.empty(ROWS * WIDTH)

    def step() -> object:
        total: Tensor | None = None
        for start in range(0, len(states), ROWS):
            rows = states[start : start + ROWS]
            for first in range(0, len(weight), WIDTH):
                part = weight[first : first + WIDTH]
                logits = torch.mm(rows, part.t(), out=tile[: len(rows) * len(part)].view(len(rows), -1))
                total = logits @ part
                gradient[first : first + WIDTH].addmm_(logits.t(), rows)
        return total

    return step
