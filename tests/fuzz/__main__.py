"""`python -m tests.fuzz [--inputs N] [--seed S] [--workers N] [--only KIND[:NUMBER]]`.

Each worker is a process that runs its share of the inputs. Status 1 if any input was answered wrongly; KIND:NUMBER of
the report runs one input again.
"""

from __future__ import annotations

import argparse
import json
import math
import selectors
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from .driver import SECONDS, work
from .kinds import KINDS

MAX_SHOWN = 40
DEADLINE = 20 * SECONDS
"""Seconds without a word of a worker, after which it hangs in code that no signal interrupts; long, since other
programs may keep the machine busy."""


def list_inputs(num: int, only: str | None) -> list[tuple[str, int]]:
    """Return the kind and the number of every input; kinds have their shares."""
    if only is not None and ":" in only:
        kind, _, number = only.partition(":")
        return [(kind, int(number))]
    kinds = [kind for kind, (share, _) in KINDS.items() for _ in range(share) if only in (None, kind)]
    return [(kinds[number % len(kinds)], number) for number in range(num)]


@dataclass
class Worker:
    """A process with inputs to run. One that ends before them is started again behind the input that ended it."""

    inputs: list[tuple[str, int]]
    seed: int
    process: subprocess.Popen[str] | None = None
    heard_at: float = math.inf
    """When it last wrote a line; infinite before the first one, since it makes its examples."""

    def start(self) -> subprocess.Popen[str]:
        """Start the process, which reads its inputs and writes a line before and after each."""
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(self.seed), "--work"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.inputs))
        self.process.stdin.close()
        self.heard_at = math.inf
        return self.process


def run(inputs: list[tuple[str, int]], seed: int, num_workers: int) -> tuple[dict[str, Counter[int]], list[str]]:
    """Run all inputs; return the statuses by kind, and what was wrong."""
    statuses: dict[str, Counter[int]] = defaultdict(Counter)
    faults: list[str] = []
    shares = [share for start in range(num_workers) if (share := inputs[start::num_workers])]
    with selectors.DefaultSelector() as selector:
        for worker in [Worker(share, seed) for share in shares]:
            selector.register(worker.start().stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
        while selector.get_map():
            for key, _ in selector.select(timeout=1):
                worker, line = key.data, key.fileobj.readline()  # type: ignore[union-attr]
                if line:
                    worker.heard_at = time.monotonic()
                    _note_answer(worker, json.loads(line), statuses, faults)
                    continue
                selector.unregister(key.fileobj)
                status = worker.process.wait()
                if worker.inputs and worker.heard_at == math.inf:
                    raise SystemExit(f"a worker ended with status {status} before its first input")
                if worker.inputs:
                    kind, number = worker.inputs.pop(0)
                    statuses[kind][-1] += 1
                    faults.append(f"{kind}:{number} ended the process with status {status}")
                    print(faults[-1], file=sys.stderr, flush=True)
                if worker.inputs:
                    selector.register(worker.start().stdout, selectors.EVENT_READ, worker)
            for key in selector.get_map().values():
                if time.monotonic() - key.data.heard_at > DEADLINE:
                    key.data.process.kill()
    return statuses, faults


def _note_answer(
    worker: Worker, answer: dict[str, Any], statuses: dict[str, Counter[int]], faults: list[str]
) -> None:  # fmt: skip
    if "status" not in answer:
        return
    kind, _ = worker.inputs.pop(0)
    statuses[kind][answer["status"]] += 1
    if answer["fault"]:
        faults.append(answer["fault"])
        print(answer["fault"], file=sys.stderr, flush=True)


def main() -> int:
    """Run all inputs and print how they were answered."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", metavar="KIND[:NUMBER]")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(json.load(sys.stdin), given.seed)
        return 0
    inputs = list_inputs(given.inputs, given.only)
    print(f"{len(inputs):,} inputs, seed {given.seed}", flush=True)
    began = time.monotonic()
    statuses, faults = run(inputs, given.seed, given.workers)
    print(f"{'kind':16}{'inputs':>8}{'status 0':>10}{'1':>8}{'2':>8}{'other':>8}")
    rows = {kind: statuses[kind] for kind in KINDS if kind in statuses}
    rows["all"] = sum(rows.values(), Counter())
    for kind, counts in rows.items():
        known = [counts[status] for status in (0, 1, 2)]
        num = counts.total()
        print(f"{kind:16}{num:8,}{known[0]:10,}{known[1]:8,}{known[2]:8,}{num - sum(known):8,}")
    print(f"{len(faults)} answered wrongly; {time.monotonic() - began:.0f} s")
    for fault in faults[:MAX_SHOWN]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
