"""CPU seconds of the commands that should answer at once, each a process of its own, from its start to its end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table import Row, Table, at_most, compared
from tests.reports.study.made import BASE, HIGH, large

QUICK, LARGE = 1.5, 15.0
ROUNDS = 3


def table() -> Table:
    """Run each command three times; the best counts."""
    title = f"CPU seconds of quick commands, the best of {ROUNDS}; a first report draws its charts, a second has them"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        results = folder / "results.csv"
        lines = [
            f"{arm},{seed},{value}" for arm, values in (("a", BASE), ("b", HIGH)) for seed, value in enumerate(values)
        ]
        results.write_text("arm,seed,accuracy\n" + "\n".join(lines) + "\n", encoding="utf-8")
        small, wide = large(folder / "small", 3, 5), large(folder / "wide", 30, 20)
        rows = [
            measure("compare", ["compare", str(small)], QUICK),
            measure("plan", ["plan", str(small)], QUICK),
            measure("judge", ["judge", str(results), "--smallest", "0.05"], QUICK),
            measure("recipes", ["recipes"], QUICK),
            measure("report, 3 arms × 5 seeds, first", ["report", str(small)], LARGE, caches=folder),
            measure("report, 3 arms × 5 seeds", ["report", str(small)], QUICK),
            measure("report, 30 arms × 20 seeds, first", ["report", str(wide)], LARGE, caches=folder),
            measure("report, 30 arms × 20 seeds", ["report", str(wide)], LARGE),
        ]
    return compared(title, rows)


def measure(what: str, words: Sequence[str], limit: float, caches: Path | None = None) -> Row:
    """Run a command several times, with an empty cache each time if a folder for caches is given."""
    found = []
    for number in range(ROUNDS):
        cache = {} if caches is None else {"ATTNLAB_CACHE": str(caches / f"{what}-{number}")}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "attnlab", *words],
            env={**os.environ, **cache},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return Row(what, "time", min(found), "the limit", limit, at_most(1))
