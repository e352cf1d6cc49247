"""The self-test: `python -m attnlab.statistics [REPEATS]` prints false-positive rates and power of simulated studies.

The exit status is 0 if every bound is kept, 1 if one is not, 2 if REPEATS is not a number.
"""

import sys
from collections.abc import Sequence
from itertools import groupby

from attnlab.studies import simulation as studies

from .cases import list_cases, list_refused
from .simulation import COLUMNS, Case, Path, Rate, measure, start_study

NUM_REPEATS = 2000


def main(arguments: Sequence[str], path: Path = start_study) -> int:
    """Print the tables; return the exit status. path: how a study is decided, the statistics' own if it is left out.

    The last part of the first table always goes through a ledger of `attnlab.studies`.
    """
    if len(arguments) > 1 or not all(word.isascii() and word.isdigit() and int(word) > 0 for word in arguments):
        came = " ".join(arguments)
        print(f"python -m attnlab.statistics takes one number of repeats, such as 2000, not '{came}'", file=sys.stderr)
        return 2
    num_repeats = int(arguments[0]) if arguments else NUM_REPEATS
    print(f"False positives and power over {num_repeats} simulated studies each (some fewer, where they take long).")
    print("Power is how often a difference is found that is there; its size is in SDs of one seed's difference.\n")
    rates = print_rates([*list_cases(), *studies.list_cases()], num_repeats, path)
    print("\nWhat attnlab does not do, on the same scores, and what no analysis of few seeds can guard against.")
    print_rates(list(list_refused()), num_repeats, path)
    broken = [rate.case.what for rate in rates if not rate.is_kept]
    print(f"\nBounds broken: {len(broken)} ({'; '.join(broken)})." if broken else "\nEvery bound is kept.")
    return 1 if broken else 0


def print_rates(cases: Sequence[Case], num_repeats: int, path: Path) -> list[Rate]:
    """Print one row per case, as each is measured, under the name of its part."""
    rows = [(case.what, case.seeds, case.before, "00.0%", "00%", "") for case in cases]
    widths = [max(len(cell) for cell in column) for column in zip(COLUMNS, *rows, strict=True)]
    rates = []
    print_row(COLUMNS, widths)
    for part, members in groupby(cases, key=lambda case: case.part):
        if part != cases[0].part:
            print()
        for case in members:
            rates.append(measure(case, num_repeats, path))
            print_row(rates[-1].cells(), widths)
    return rates


def print_row(cells: Sequence[str], widths: Sequence[int]) -> None:
    """Print cells under their columns."""
    line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    print(line.rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
