"""The self-test: `python -m attnlab.statistics [REPEATS]` prints false-positive rates and power of simulated studies.

The exit status is 0 if every bound is kept, 1 if one is not, 2 if REPEATS is not a number.
"""

import sys
from collections.abc import Iterable, Sequence

from attnlab.studies import simulation as studies

from .cases import list_cases, list_unsound_methods
from .simulation import COLUMNS, Case, Rate, measure

NUM_REPEATS = 2000


def main(arguments: Sequence[str]) -> int:
    """Print the tables and return the exit status; the last part of the first table uses the ledger of a study."""
    if len(arguments) > 1 or not all(word.isascii() and word.isdigit() and int(word) > 0 for word in arguments):
        given = " ".join(arguments)
        print(f"python -m attnlab.statistics takes one number of repeats, such as 2000, not '{given}'", file=sys.stderr)
        return 2
    num_repeats = int(arguments[0]) if arguments else NUM_REPEATS
    print(f"False positives and power over {num_repeats} simulated studies each (fewer for slow ones).")
    print("Power is how often a true difference is found; its size is in SDs of one seed's difference,")
    print("for stability it is the ratio of the arms' SDs.\n")
    rates = print_rates([*list_cases(), *studies.list_cases()], num_repeats)
    print("\nWhat attnlab does not do, on the same scores, and a limit of any analysis of few seeds.")
    print_rates([*list_unsound_methods(), *studies.list_unsound_searches()], num_repeats)
    broken = [rate.case.what for rate in rates if not rate.is_kept]
    print(f"\nBounds broken: {len(broken)} ({'; '.join(broken)})." if broken else "\nEvery bound is kept.")
    return 1 if broken else 0


def print_rates(cases: Sequence[Case], num_repeats: int) -> list[Rate]:
    """Print one row per case as soon as it is measured, with an empty line between parts."""
    rows = [(case.what, case.seeds, case.before, "00.0%", "00%", "") for case in cases]
    widths = [max(len(cell) for cell in column) for column in zip(COLUMNS, *rows, strict=True)]
    rates: list[Rate] = []
    _print_row(COLUMNS, widths)
    for case in cases:
        if rates and case.part != rates[-1].case.part:
            print()
        rates.append(measure(case, num_repeats))
        _print_row(rates[-1].cells(), widths)
    return rates


def _print_row(cells: Iterable[str], widths: Sequence[int]) -> None:
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
