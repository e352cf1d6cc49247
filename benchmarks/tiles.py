"""Matrix products by the processor's tiles against torch's in fp32, at the sizes that training a small model takes.

A layer's three products are its output and the gradients of its input and weight; a head's gradient is added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.kernels.amx import has_tiles
from attnlab.kernels.measure import one_thread, time_each
from attnlab.kernels.products import product
from benchmarks.table import NOTHING, Table

COLUMNS = ("rows × width × outputs", "product", "tiles, GF/s", "torch fp32, GF/s", "times as fast", "target", "met")


@dataclass(frozen=True)
class Size:
    """A linear layer on so many rows, and how many times as fast its products are to be."""

    rows: int
    width: int
    outputs: int
    target: float | None = None
    is_head: bool = False

    def __str__(self) -> str:
        return f"{self.rows} × {self.width} × {self.outputs}"


SIZES = (
    Size(6144, 256, 1024, 3),
    Size(6144, 1024, 256, 3),
    Size(6144, 256, 256),
    Size(274, 256, 30522, 2.5, is_head=True),
    Size(274, 48, 26604, is_head=True),
)


def table(sizes: tuple[Size, ...] = SIZES, budget: float = 2.0) -> Table:
    """Time the three products of each size, both ways in turn, on one thread."""
    title = "Products with factors in bf16 and sums in fp32, packing included, against torch in fp32: one thread"
    works, reason = has_tiles()
    if not works:
        return Table(title, COLUMNS, [], [f"Not measured: {reason}."])
    rows: list[tuple[str, ...]] = []
    num_missed = 0
    with one_thread():
        for size in sizes:
            flops = 2e-9 * size.rows * size.width * size.outputs
            for name, ways in products_of(size).items():
                seconds = time_each(ways, budget)
                own, other = (flops / seconds[way] for way in ("tiles", "torch"))
                is_met = size.target is None or own >= size.target * other
                num_missed += not is_met
                verdict = (NOTHING, NOTHING) if size.target is None else (f"≥ {size.target:g}×", "✓" if is_met else "✗")
                rows.append((str(size), name, f"{own:.0f}", f"{other:.0f}", f"{own / other:.1f}×", *verdict))
    return Table(title, COLUMNS, rows, num_missed=num_missed)


def products_of(size: Size) -> dict[str, dict[str, Callable[[], object]]]:
    """Return a layer's three products, each by tiles and by torch, into memory that is there."""
    x, weight = torch.randn(size.rows, size.width), torch.randn(size.outputs, size.width)
    slope = torch.randn(size.rows, size.outputs)
    return {
        "output": both(x, weight.t(), is_added=False),
        "gradient of the input": both(slope, weight, is_added=False),
        "gradient of the weight": both(slope.t(), x, is_added=size.is_head),
    }


def both(a: Tensor, b: Tensor, is_added: bool) -> dict[str, Callable[[], object]]:
    """Return a product both ways."""
    out = torch.zeros(a.shape[0], b.shape[1])
    return {
        "tiles": lambda: product(a, b, out, accumulate=is_added),
        "torch": lambda: out.addmm_(a, b) if is_added else torch.mm(a, b, out=out),
    }
