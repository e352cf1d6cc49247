"""`python -m tests.fuzz [--inputs N] [--seed S] [--workers N] [--only KIND[:NUMBER]]`.

Each worker runs its share of the inputs. Status 1 if any input was answered wrongly; KIND:NUMBER of the report runs one
input again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

from .driver import work
from .kinds import KINDS

MAX_SHOWN = 40


def list_inputs(num: int, only: str | None) -> list[tuple[str, int]]:
    """Return the kind and the number of every input; kinds have their shares."""
    if only is not None and ":" in only:
        kind, _, number = only.partition(":")
        return [(kind, int(number))]
    kinds = [kind for kind, (share, _) in KINDS.items() for _ in range(share) if only in (None, kind)]
    return [(kinds[number % len(kinds)], number) for number in range(num)]


def main() -> int:
    """Run all inputs and print how they were answered."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", metavar="KIND[:NUMBER]")
    given = parser.parse_args()
    inputs = list_inputs(given.inputs, given.only)
    print(f"{len(inputs):,} inputs, seed {given.seed}", flush=True)
    began = time.monotonic()
    shares = [inputs[start :: given.workers] for start in range(given.workers)]
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        tallies = pool.starmap(work, [(share, given.seed) for share in shares if share], chunksize=1)
    faults = [fault for tally in tallies for fault in tally.faults]
    print(f"{'kind':16}{'inputs':>8}{'status 0':>10}{'1':>8}{'2':>8}{'other':>8}")
    total = [0] * 5
    for kind in KINDS:
        counts = [tally.statuses[kind] for tally in tallies if kind in tally.statuses]
        by_status = [sum(count[status] for count in counts) for status in (0, 1, 2)]
        num = sum(sum(count.values()) for count in counts)
        row = [num, *by_status, num - sum(by_status)]
        total = [old + new for old, new in zip(total, row, strict=True)]
        print(f"{kind:16}{row[0]:8,}{row[1]:10,}{row[2]:8,}{row[3]:8,}{row[4]:8,}")
    print(f"{'all':16}{total[0]:8,}{total[1]:10,}{total[2]:8,}{total[3]:8,}{total[4]:8,}")
    print(f"{len(faults)} answered wrongly; {time.monotonic() - began:.0f} s")
    for fault in faults[:MAX_SHOWN]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
