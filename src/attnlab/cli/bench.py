"""`attnlab bench`: what a mechanism costs beside torch's SDPA and eager PyTorch, and how that grows with length."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.charts import growth
    from attnlab.kernels.comparison import Comparison, Setting
    from attnlab.kernels.machine import Machine
    from attnlab.kernels.measure import Cost

LENGTHS = "256,512,1024,2048"
COLUMNS = (
    "length", "kernel", "time", "growth", "SDPA", "× SDPA", "eager", "× faster",
    "memory", "SDPA memory", "eager memory",
)  # fmt: skip


def bench(
    lines: Annotated[list[str], typer.Argument(metavar="MECHANISM…", help="Lines or names of the catalog.")],
    causal: Annotated[bool, typer.Option(help="Whether a query sees earlier keys alone.")] = True,
    lengths: Annotated[str, typer.Option(help="Lengths to measure, with commas between.")] = LENGTHS,
    batch: Annotated[int, typer.Option(min=1, help="Sequences at once.")] = 1,
    heads: Annotated[int, typer.Option(min=1, help="Number of heads.")] = 4,
    head_dim: Annotated[int, typer.Option(min=1, help="Width of a head.")] = 64,
    dtype: Annotated[Literal["fp32", "bf16", "fp64"], typer.Option(help="Type of numbers.")] = "fp32",
    kernel: Annotated[str, typer.Option(help="A kernel by name; auto takes the fastest.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers for programs to read.")] = False,
    figure: Annotated[
        str | None, typer.Option(help="Draw time and memory: FILE.svg, .png, .html or .json.")
    ] = None,
) -> int:
    """Measure a mechanism, forward and backward, against torch's SDPA and eager PyTorch."""
    # Imported here because the command line must answer --help without torch.
    import torch

    from attnlab import charts
    from attnlab.kernels.comparison import Setting
    from attnlab.kernels.machine import describe
    from attnlab.mechanisms import Mechanism
