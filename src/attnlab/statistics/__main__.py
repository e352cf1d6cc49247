"""The self-test: `python -m attnlab.statistics [REPEATS]` prints how often nothing looks like something.

The status is 0 where every bound is kept, 1 where one is not, 2 where REPEATS is no number.
"""

import sys
from collections.abc import Iterable, Sequence

from .selftest import COLUMNS, Case, Rate, measure, refused, stabilities, verdicts

NUM_REPEATS = 2000


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return the exit status."""
    if len(arguments) > 1 or not all(word.isascii() and word.isdigit() and int(word) > 0 for word in arguments):
        shown = " ".join(arguments)
        print(
            f"python -m attnlab.statistics takes one number of repeats, such as 2000; it has '{shown}'", file=sys.stderr
        )
        return 2
    num_repeats = int(arguments[0]) if arguments else NUM_REPEATS
    print(f"Arms that do not differ, {num_repeats} times each: how often a difference is found.\n")
    print("Through the verdict, BETTER or WORSE; through the word on stability, LESS or MORE STABLE.")
    rates = print_rates([*verdicts(), *stabilities()], num_repeats)
    print("\nWhat attnlab does not do, and why.")
    print_rates(refused(), num_repeats)
    num_broken = sum(not rate.is_kept for rate in rates)
    print(f"\nBounds broken: {num_broken}." if num_broken else "\nEvery bound is kept.")
    return 1 if num_broken else 0


def print_rates(cases: Iterable[Case], num_repeats: int) -> list[Rate]:
    """Print one row a case, as each is measured."""
    known = list(cases)
    blank = [(case.what, case.how, case.seeds, "", "", "") for case in known]
    widths = [max(len(cell) for cell in column) for column in zip(COLUMNS, *blank, strict=True)]
    rates = []
    print_row(COLUMNS, widths)
    for case in known:
        rates.append(measure(case, num_repeats))
        print_row(rates[-1].cells(), widths)
    return rates


def print_row(cells: Sequence[str], widths: Sequence[int]) -> None:
    """Print cells under their columns."""
    line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    print(line.rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
