"""`attnlab bench`: time and memory of mechanisms beside torch's SDPA and eager PyTorch, by length."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attnlab.cli.options import AsJson, Batch, Causal, FigureFile, HeadDim, Heads, Mechanisms, Plugins
from attnlab.cli.plugin import load_plugins
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
MAX_DIGITS, MAX_NUMBERS = 9, 2**36


def bench(
    lines: Mechanisms,
    causal: Causal = True,
    lengths: Annotated[str, typer.Option(help="The lengths, separated by commas.")] = "256,512,1024,2048",
    batch: Batch = 1,
    heads: Heads = 4,
    head_dim: HeadDim = 64,
    dtype: Annotated[str, typer.Option(metavar="|".join(DTYPES), help="The dtype.")] = "fp32",
    kernel: Annotated[str, typer.Option(help="A kernel's name; auto: the one that attnlab explain names.")] = "auto",
    as_json: AsJson = False,
    figure: FigureFile = None,
    plugins: Plugins = None,
) -> int:
    """Measure mechanisms, forward and backward, beside torch's SDPA and eager PyTorch."""
    import torch

    from attnlab import charts
    from attnlab.kernels.comparison import Setting, compare, explain_choice
    from attnlab.machine import bf16_fault, describe
    from attnlab.mechanisms import parse_mechanism
    from attnlab.reports.catalog import describe_setting

    name = _read_dtype(dtype)
    setting = Setting(batch, heads, head_dim, causal, getattr(torch, DTYPES[name]))
    sizes = _read_lengths(lengths)
    _refuse_bare_lengths(lines, lengths)
    if (num := batch * heads * head_dim * sizes[-1]) > MAX_NUMBERS:
        raise RequestError(f"queries of {num:.1e} numbers do not fit any memory; give a smaller batch, head or length")
    load_plugins(plugins)
    mechanisms = {line: parse_mechanism(line) for line in lines}
    # All mistakes of the request are found before the first measurement.
    for mechanism in mechanisms.values():
        explain_choice(mechanism, sizes[0], setting, kernel)
    if figure is not None:
        charts.check(figure)
    if name == "bf16" and (fault := bf16_fault()):
        raise RequestError(fault)
    machine = describe(num_threads=1)
    if not as_json:
        print(f"{machine}\n{describe_setting(setting, name)}")
    measured: dict[str, list[KernelComparison]] = {}
    for line, mechanism in mechanisms.items():
        measured[line] = []
        for length in sizes:
            if sys.stderr.isatty():
                print(f"measuring '{line}' at length {length}", file=sys.stderr)
            measured[line].append(compare(mechanism, length, setting, kernel))
        if not as_json:
            _print_kernels(line, measured[line])
    if as_json:
        print_json(_make_record(machine, setting, name, measured))
    else:
        _print_comparisons(measured)
    if figure is not None:
        title = f"Forward and backward, {describe_setting(setting, name)}"
        subtitle = [str(machine), "thin grey lines: growth with the length, n, and with its square, n²"]
        charts.save(charts.growth.draw(_make_points(measured), title, subtitle), figure)
        print(f"drawn in {figure}", file=sys.stderr)
    return 0


def _read_dtype(text: str) -> Dtype:
    for name, torch_name in DTYPES.items():
        if text == name:
            return name
        if text == torch_name:
            raise RequestError(f"--dtype takes short names; write {name} instead of '{text}'")
    raise RequestError(f"--dtype must be one of {', '.join(DTYPES)}, not '{text}'")


def _refuse_bare_lengths(lines: Sequence[str], lengths: str) -> None:
    # A shell splits "--lengths 256 512" into a length and a mechanism.
    bare = [line for line in lines if line.isascii() and line.isdigit()]
    if bare:
        wanted = ",".join([lengths, *bare])
        raise RequestError(f"'{bare[0]}' is not a mechanism; separate lengths by commas: --lengths {wanted}")


def _read_lengths(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    is_length = re.compile(rf"0*[1-9][0-9]{{0,{MAX_DIGITS - 1}}}").fullmatch
    wrong = next((word for word in words if not is_length(word)), None)
    if wrong is not None:
        raise RequestError(
            f"--lengths takes positive whole numbers and commas, such as 256,512, of up to {MAX_DIGITS} digits; it has "
            f"'{wrong[:40]}'"
        )
    return sorted({int(word) for word in words})


def _print_kernels(line: str, comparisons: Sequence["KernelComparison"]) -> None:
    print(f"\n{line}")
    reasons = {row.choice.kernel: row.choice.reason for row in comparisons}
    for kernel, reason in reasons.items():
        lengths = [str(row.length) for row in comparisons if row.choice.kernel == kernel]
        where = f" at {', '.join(lengths)}" if len(reasons) > 1 else ""
        print(f"kernel {kernel}{where}: {reason}")
    for row in comparisons:
        if row.left_out:
            print(f"eager is omitted at length {row.length}: {row.left_out}")


def _print_comparisons(measured: Mapping[str, Sequence["KernelComparison"]]) -> None:
    """Print one table, by length and then by line, so that the lines of one length are below each other."""
    from attnlab.kernels.measure import three_digits

    rows: list[tuple[int, tuple[str, ...]]] = []
    for line, comparisons in measured.items():
        factors = _divide_by_first(measured, line)
        for row, power, factor in zip(comparisons, _compute_growths(comparisons), factors, strict=True):
            length, *costs = _make_row(row, power)
            rows.append(
                (row.length, (length, line, *costs, three_digits(factor)) if len(measured) > 1 else (length, *costs))
            )
    columns = (COLUMNS[0], "mechanism", *COLUMNS[1:], "time ÷ first") if len(measured) > 1 else COLUMNS
    print()
    print_table(columns, [row for _, row in sorted(rows, key=lambda row: row[0])])
    if len(next(iter(measured.values()))) > 1:
        print("growth: time grew with this power of the length since the length before")
    if len(measured) > 1:
        print(f"time ÷ first: time divided by that of '{next(iter(measured))}' at the same length")


def _divide_by_first(measured: Mapping[str, Sequence["KernelComparison"]], line: str) -> list[float]:
    """Return the time of a line divided by that of the first line, at each length."""
    first = next(iter(measured.values()))
    return [row.own.seconds / other.own.seconds for row, other in zip(measured[line], first, strict=True)]


def _make_row(row: "KernelComparison", power: float | None) -> tuple[str, ...]:
    from attnlab.kernels.measure import show_bytes, show_seconds, three_digits

    own, sdpa, eager = row.own, row.sdpa, row.eager
    return (
        str(row.length), show_seconds(own.seconds), NOTHING if power is None else f"n^{power:.2f}",
        show_seconds(sdpa.seconds), three_digits(own.seconds / sdpa.seconds),
        show_seconds(eager.seconds) if eager else NOTHING,
        three_digits(eager.seconds / own.seconds) if eager else NOTHING,
        show_bytes(own.memory), show_bytes(sdpa.memory), show_bytes(eager.memory) if eager else NOTHING,
    )  # fmt: skip


def _compute_growths(comparisons: Sequence["KernelComparison"]) -> list[float | None]:
    from attnlab.kernels.measure import growth

    costs = [(row.length, row.own.seconds) for row in comparisons]
    return [None, *(growth(before, after) for before, after in pairwise(costs))]


def _make_points(measured: dict[str, list["KernelComparison"]]) -> list["GrowthPoint"]:
    from attnlab.charts.growth import GrowthPoint

    chosen, eager = "attnlab, or torch's SDPA", "eager PyTorch"
    first = next(iter(measured.values()))

    def point(name: str, kind: str, length: int, cost: "Measurement") -> GrowthPoint:
        return GrowthPoint(name, kind, length, cost.seconds, cost.memory)

    points = [point("SDPA", chosen, row.length, row.sdpa) for row in first]
    for line, comparisons in measured.items():
        name = f"{line} · {', '.join(dict.fromkeys(row.choice.kernel for row in comparisons))}"
        points += [point(name, chosen, row.length, row.own) for row in comparisons]
        points += [point(name, eager, row.length, row.eager) for row in comparisons if row.eager]
    return points


def _make_record(
    machine: "Machine", setting: "Setting", dtype: Dtype, measured: dict[str, list["KernelComparison"]]
) -> dict[str, Any]:
    results = [
        {
            "mechanism": str(row.choice.request.mechanism), "asked": line, "length": row.length,
            "kernel": row.choice.kernel, "reason": row.choice.reason, "refused": dict(row.choice.refused),
            "own": asdict(row.own), "sdpa": asdict(row.sdpa), "eager": asdict(row.eager) if row.eager else None,
            "eager_left_out": row.left_out, "growth": power, "time_to_sdpa": row.own.seconds / row.sdpa.seconds,
            "time_to_first": factor,
        }
        for line, comparisons in measured.items()
        for row, power, factor in zip(
            comparisons, _compute_growths(comparisons), _divide_by_first(measured, line), strict=True
        )
    ]  # fmt: skip
    settings = {**asdict(setting), "dtype": dtype, "pass": "forward and backward"}
    return {"machine": asdict(machine), "setting": settings, "results": results}
