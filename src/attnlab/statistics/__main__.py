"""The self-test: `python -m attnlab.statistics [REPEATS] [PART…]` prints false-positive rates and power of simulations.

Parts such as trend or looks select cases; without any, all run. The exit status is 0 if every bound is kept, 1 if one
is not, 2 if a word is neither a number of repeats nor a part.
"""

import sys
from collections.abc import Iterable, Sequence

from attnlab.studies import simulation as studies

from .cases import list_cases, list_unsound_methods
from .simulation import COLUMNS, Case, Rate, measure

NUM_REPEATS = 2000


def main(arguments: Sequence[str]) -> int:
    """Print the tables and return the exit status; the last part of the first table uses the ledger of a study."""
    cases = [*list_cases(), *studies.list_cases()]
    unsound = [*list_unsound_methods(), *studies.list_unsound_searches()]
    numbers = [word for word in arguments if word.isdecimal()]
    parts = [word for word in arguments if not word.isdecimal()]
    known = list(dict.fromkeys(case.part for case in (*cases, *unsound)))
    if len(numbers) > 1 or not all(word.isascii() and int(word) > 0 for word in numbers) or {*parts} - {*known}:
        takes = f"one number of repeats, such as 2000, and parts: {', '.join(known)}"
        print(f"python -m attnlab.statistics takes {takes}; not '{' '.join(arguments)}'", file=sys.stderr)
        return 2
    cases, unsound = ([case for case in group if case.part in (parts or known)] for group in (cases, unsound))
    num_repeats = int(numbers[0]) if numbers else NUM_REPEATS
    print(f"False positives and power over {num_repeats} simulated studies each (fewer for slow ones).")
    print("Power is how often a true difference is found; its size is in SDs of one seed's difference,")
    print("for stability it is the ratio of the arms' SDs, for copied arms their number.\n")
    rates = print_rates(cases, num_repeats)
    if unsound:
        print("\nWhat attnlab does not do, on the same scores, and a limit of any analysis of few seeds.")
        print_rates(unsound, num_repeats)
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
