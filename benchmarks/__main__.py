"""Run the benchmarks: `python -m benchmarks` for all of a few minutes, `python -m benchmarks additive linear` for some.

`mqar` trains for long, and runs only where it is named.

The status is 0 where every target is met, 1 where one is missed, 2 where a name is unknown.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from attnlab.cli.tables import print_table
from attnlab.errors import closest
from attnlab.machine import describe
from benchmarks import (
    additive,
    algebra,
    band,
    bypass,
    commands,
    data,
    distance,
    flex,
    growth,
    head,
    install,
    linear,
    mqar,
    pointwise,
    profile,
    report,
    stages,
    threads,
    training,
)
from benchmarks.table import Table

TABLES: Mapping[str, Callable[[], Table]] = {
    "additive": additive.table,
    "pointwise": pointwise.table,
    "distance": distance.table,
    "stages": stages.table,
    "threads": threads.table,
    "bypass": bypass.table,
    "install": install.table,
    "data": data.table,
    "training": training.table,
    "head": head.table,
    "profile": profile.table,
    "report": report.table,
    "commands": commands.table,
    "flex": flex.table,
    "growth": growth.table,
    "band": band.table,
    "algebra": algebra.table,  # keeps freed memory, as `linear` does: the last two of those that run by default
    "linear": linear.table,
    "mqar": mqar.table,
}
ON_REQUEST = frozenset({"mqar"})
"""Tables that are made only where they are named."""


def main(names: Sequence[str], tables: Mapping[str, Callable[[], Table]] = TABLES) -> int:
    """Print the tables of these names, or all; return the exit status."""
    for name in names:
        if name not in tables:
            known = closest(name, tables) or f"; there are {', '.join(tables)}"
            print(f"benchmarks: no table is named '{name}'{known}", file=sys.stderr)
            return 2
    print(describe(num_threads=1))
    print("Times are the best of interleaved rounds, memory is the peak beyond the inputs.")
    num_missed = 0
    for name in names or [name for name in tables if name not in ON_REQUEST]:
        table = tables[name]()
        print(f"\n$ python -m benchmarks {name}\n{table.title}\n")
        print_table(table.columns, table.rows)
        print("".join(f"{note}\n" for note in table.notes), end="", flush=True)
        num_missed += table.num_missed
    print(f"\nTargets missed: {num_missed}." if num_missed else "\nEvery target is met.")
    return 1 if num_missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
