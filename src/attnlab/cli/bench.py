"""`attnlab bench`: what a mechanism costs beside torch's SDPA and eager PyTorch, and how that grows."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attnlab.cli import plugin
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.charts.growth import GrowthPoint
    from attnlab.kernels.comparison import KernelComparison, Setting
    from attnlab.kernels.measure import Measurement
    from attnlab.machine import Machine

Dtype = Literal["fp32", "bf16", "fp64"]
DTYPES: Mapping[Dtype, str] = {"fp32": "float32", "bf16": "bfloat16", "fp64": "float64"}
COLUMNS = (
    "length", "time", "growth", "SDPA", "time ÷ SDPA", "eager", "eager ÷ time", "memory", "SDPA's", "eager's"
)  # fmt: skip
NOTHING = "–"


def bench(
    lines: Annotated[list[str], typer.Argument(metavar="MECHANISM…", help="Lines, or names of the catalog.")],
    causal: Annotated[bool, typer.Option(help="Whether a query sees no key after it.")] = True,
    lengths: Annotated[str, typer.Option(help="The lengths, with commas between.")] = "256,512,1024,2048",
    batch: Annotated[int, typer.Option(min=1, help="How many sequences at once.")] = 1,
    heads: Annotated[int, typer.Option(min=1, help="How many heads.")] = 4,
    head_dim: Annotated[int, typer.Option(min=1, help="How wide a head is.")] = 64,
    dtype: Annotated[str, typer.Option(metavar="|".join(DTYPES), help="What the numbers are.")] = "fp32",
    kernel: Annotated[str, typer.Option(help="A kernel's name; auto takes the fastest that can.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers for programs to read.")] = False,
    figure: Annotated[str | None, typer.Option(metavar="FILE", help="Draw it: FILE.svg, .png, .html or .json.")] = None,
    plugins: Annotated[
        list[str] | None, typer.Option("--plugin", metavar="FILE.py", help="Python that registers stages of your own.")
    ] = None,
) -> int:
    """Measure mechanisms, forward and backward, beside torch's SDPA and eager PyTorch."""
    # Imported here because the command line must answer --help without torch.
    import torch

    from attnlab import charts
    from attnlab.kernels.comparison import Setting, compare, explained
    from attnlab.machine import bf16_fault, describe
    from attnlab.mechanisms import Mechanism
    from attnlab.reports.catalog import describe_setting

    numbers = _read_dtype(dtype)
    setting = Setting(batch, heads, head_dim, causal, getattr(torch, DTYPES[numbers]))
    wanted = _read_lengths(lengths)
    _refuse_bare_lengths(lines, lengths)
    for path in plugins or []:
        plugin.load_plugin(path)
    mechanisms = {line: Mechanism.parse(line) for line in lines}
    # All that can be wrong with the request comes out before the first measurement.
    for mechanism in mechanisms.values():
        explained(mechanism, wanted[0], setting, kernel)
    if figure is not None:
        charts.check(figure)
    if numbers == "bf16" and (fault := bf16_fault()):
        raise RequestError(fault)
    machine = describe(num_threads=1)
    if not as_json:
        print(f"{machine}\n{describe_setting(setting, numbers)}")
    found: dict[str, list[KernelComparison]] = {}
    for line, mechanism in mechanisms.items():
        found[line] = []
        for length in wanted:
            _show_progress(line, length)
            found[line].append(compare(mechanism, length, setting, kernel))
        if not as_json:
            _print_comparisons(line, found[line])
    if as_json:
        print_json(_make_record(machine, setting, numbers, found))
    if figure is not None:
        title = f"Forward and backward, {describe_setting(setting, numbers)}"
        subtitle = [str(machine), "thin grey lines: growth with the length, n, and with its square, n²"]
        charts.save(charts.growth.draw(_make_points(found), title, subtitle), figure)
        print(f"drawn in {figure}", file=sys.stderr)
    return 0


def _read_dtype(text: str) -> Dtype:
    """Read the name of a dtype; torch's own names are answered with ours."""
    for name, torch_name in DTYPES.items():
        if text == name:
            return name
        if text == torch_name:
            raise RequestError(f"--dtype calls '{text}' by its short name: {name}")
    raise RequestError(f"--dtype is one of {', '.join(DTYPES)}, not '{text}'")


def _refuse_bare_lengths(lines: Sequence[str], lengths: str) -> None:
    """Refuse numbers in place of mechanisms: lengths that were parted by spaces."""
    bare = [line for line in lines if line.isascii() and line.isdigit()]
    if bare:
        wanted = ",".join([lengths, *bare])
        raise RequestError(f"'{bare[0]}' is no mechanism; lengths go with commas: --lengths {wanted}")


def _read_lengths(text: str) -> list[int]:
    """Read whole numbers from 1 on, with commas between; return them in order."""
    words = [word.strip() for word in text.split(",")]
    wrong = next((word for word in words if not (word.isascii() and word.isdigit()) or int(word) == 0), None)
    if wrong is not None:
        raise RequestError(
            f"--lengths takes whole numbers from 1 on with commas between, such as 256,512; it has '{wrong}'"
        )
    return sorted({int(word) for word in words})


def _show_progress(line: str, length: int) -> None:
    """Say on a terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"measuring '{line}' at length {length}", file=sys.stderr)


def _print_comparisons(line: str, comparisons: Sequence[KernelComparison]) -> None:
    """Print one mechanism's table: why these kernels, and why eager is missing where it is."""
    print(f"\n{line}")
    reasons = {found.choice.kernel: found.choice.reason for found in comparisons}
    for kernel, reason in reasons.items():
        lengths = [str(found.length) for found in comparisons if found.choice.kernel == kernel]
        where = f" at {', '.join(lengths)}" if len(reasons) > 1 else ""
        print(f"kernel {kernel}{where}: {reason}")
    powers = _compute_growths(comparisons)
    print_table(COLUMNS, [_make_row(found, power) for found, power in zip(comparisons, powers, strict=True)])
    for found in comparisons:
        if found.left_out:
            print(f"eager is left out at length {found.length}: {found.left_out}")
    if any(power is not None for power in powers):
        print("growth: the power of the length that time grew with since the row above")


def _make_row(found: KernelComparison, power: float | None) -> tuple[str, ...]:
    """Write one length's cells, under the names of COLUMNS."""
    from attnlab.kernels.measure import show_bytes, show_seconds, three_digits

    own, sdpa, eager = found.own, found.sdpa, found.eager
    return (
        str(found.length),
        show_seconds(own.seconds),
        NOTHING if power is None else f"n^{power:.2f}",
        show_seconds(sdpa.seconds),
        three_digits(own.seconds / sdpa.seconds),
        show_seconds(eager.seconds) if eager else NOTHING,
        three_digits(eager.seconds / own.seconds) if eager else NOTHING,
        show_bytes(own.memory),
        show_bytes(sdpa.memory),
        show_bytes(eager.memory) if eager else NOTHING,
    )


def _compute_growths(comparisons: Sequence[KernelComparison]) -> list[float | None]:
    """Return the power of growth from each length to the next; the first has none."""
    from attnlab.kernels.measure import growth

    costs = [(found.length, found.own.seconds) for found in comparisons]
    return [None, *(growth(before, after) for before, after in pairwise(costs))]


def _make_points(found: dict[str, list[KernelComparison]]) -> list[GrowthPoint]:
    """Return what the figure shows: SDPA once, then each mechanism, then each as eager."""
    from attnlab.charts.growth import GrowthPoint

    chosen, eager = "attnlab, or torch's SDPA", "eager PyTorch"
    first = next(iter(found.values()))

    def point(name: str, kind: str, length: int, taken: Measurement) -> GrowthPoint:
        return GrowthPoint(name, kind, length, taken.seconds, taken.memory)

    points = [point("SDPA", chosen, one.length, one.sdpa) for one in first]
    for line, comparisons in found.items():
        name = f"{line} · {', '.join(dict.fromkeys(one.choice.kernel for one in comparisons))}"
        points += [point(name, chosen, one.length, one.own) for one in comparisons]
        points += [point(name, eager, one.length, one.eager) for one in comparisons if one.eager]
    return points


def _make_record(
    machine: Machine, setting: Setting, dtype: Dtype, found: dict[str, list[KernelComparison]]
) -> dict[str, Any]:
    """Return everything measured as plain data: seconds and bytes."""
    results = [
        {
            "mechanism": str(one.choice.request.mechanism),
            "asked": line,
            "length": one.length,
            "kernel": one.choice.kernel,
            "reason": one.choice.reason,
            "refused": dict(one.choice.refused),
            "own": asdict(one.own),
            "sdpa": asdict(one.sdpa),
            "eager": asdict(one.eager) if one.eager else None,
            "eager_left_out": one.left_out,
            "growth": power,
        }
        for line, comparisons in found.items()
        for one, power in zip(comparisons, _compute_growths(comparisons), strict=True)
    ]
    return {
        "machine": asdict(machine),
        "setting": {**asdict(setting), "dtype": dtype, "pass": "forward and backward"},
        "results": results,
    }
