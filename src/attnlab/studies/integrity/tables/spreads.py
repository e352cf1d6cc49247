"""Means with their spread: whether a cell is the mean of several seeds, over how many, and what its ± is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtrit

from .caption import SPREAD_NAMES, SpreadKind, describe_doubt_about_seeds, find_num_seeds, find_spread_kind
from .table import Cell, group_cells


@dataclass(frozen=True)
class SpreadReading:
    """How the spreads of a table were read: their kind and number of seeds, what says so, and whether they are used.

    unused: options that have no effect, in words. doubt: what else the caption says of the seeds, in words.
    """

    kind: SpreadKind = "sd"
    kind_source: str = ""
    num_seeds: int | None = None
    num_source: str = ""
    are_of_runs: bool = False
    unused: tuple[str, ...] = ()
    doubt: str = ""


def settle_spreads(
    cells: Sequence[Cell], caption: str, num_seeds: int | None, kind: SpreadKind | None, has_seeds: bool = False
) -> tuple[tuple[Cell, ...], SpreadReading]:
    """Give every mean its SD and its number of seeds; where an arm has several rows, their spreads are not used.

    has_seeds: the table names seeds, so that a value without a spread is that of one seed.
    """
    has_spreads = any(cell.sd is not None for cell in cells)
    by_arm = group_cells(cells, lambda cell: (cell.arm, cell.group, cell.metric, cell.step)).values()
    if any(len(of_arm) > 1 for of_arm in by_arm):
        unused = _list_unused_options(num_seeds, kind, "the table has the score of each seed")
        if not has_seeds and find_num_seeds(caption) == 1:
            unused += ("1 seed (the caption) not used, since an arm has several rows, each read as a run",)
        settled = [replace(cell, sd=None, num_seeds=None) for cell in cells]
        return tuple(settled), SpreadReading(are_of_runs=has_spreads, unused=unused)
    in_table = any(cell.num_seeds for cell in cells)
    unused = () if has_spreads else _list_unused_options(None, kind, "no cell has a ±")
    if has_seeds and not has_spreads and not in_table:
        unused = _list_unused_options(num_seeds, kind, "each value is that of one seed, which the table names")
        num_seeds = None
    said, said_kind = find_num_seeds(caption), find_spread_kind(caption)
    number = num_seeds or (said if (has_spreads or not has_seeds) and not in_table else None)
    source = "--seeds" if num_seeds else "the caption"
    chosen = kind or said_kind or "sd"
    kind_source = "as given" if kind else "the caption" if said_kind else ""
    # A score of one seed without a spread is that of a run, and no mean.
    settled = [*cells] if number == 1 and not has_spreads else [_settle(cell, number, chosen) for cell in cells]
    doubt = "" if num_seeds or in_table or (has_seeds and not has_spreads) else describe_doubt_about_seeds(caption)
    return tuple(settled), SpreadReading(chosen, kind_source, number, source if number else "", False, unused, doubt)


def _list_unused_options(num_seeds: int | None, kind: SpreadKind | None, why: str) -> tuple[str, ...]:
    given = [f"--seeds {num_seeds}" if num_seeds else "", f"--spread {kind}" if kind else ""]
    return tuple(f"{option} not used, since {why}" for option in given if option)


def _settle(cell: Cell, number: int | None, kind: SpreadKind) -> Cell:
    n = cell.num_seeds if number is None else number
    sd = cell.sd
    if sd is not None and n is not None and kind != "sd":
        # Half a 95 % interval of a mean is t·sd/√n.
        sd *= math.sqrt(n) / (1.0 if kind == "se" or n < 2 else float(stdtrit(n - 1, 0.975)))
    return replace(cell, sd=sd, num_seeds=n)


def describe_spreads(cells: Sequence[Cell], reading: SpreadReading) -> Iterator[str]:
    """Say how means and spreads were read."""
    yield from reading.unused
    if reading.are_of_runs:
        yield "an arm has several rows, so each is a run, and its own ± is not used"
    if any(cell.sd is not None for cell in cells):
        source = f" ({reading.kind_source})" if reading.kind_source else " (--spread se or ci if it is not)"
        yield f"means with ± {SPREAD_NAMES[reading.kind]}{source}"
    if reading.num_seeds is not None:
        yield f"{reading.num_seeds} {'seed' if reading.num_seeds == 1 else 'seeds'} each ({reading.num_source})"
    if reading.doubt:
        yield reading.doubt
