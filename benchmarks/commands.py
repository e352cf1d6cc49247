"""CPU seconds of the commands that should answer at once, each a process of its own, from its start to its end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from attnlab.reports.watch import WatchServer
from attnlab.studies.study import Study
from benchmarks.table import Row, Table, at_most, compared
from tests.reports.study.made import BASE, HIGH, large
from tests.studies.moments import Moment, update, write
from tests.studies.samples import content

QUICK, LARGE, LOOK = 1.5, 15.0, 0.2
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
            *measure_watch(folder / "watched"),
        ]
    return compared(title, rows)


def measure_watch(folder: Path) -> list[Row]:
    """Time the server of `attnlab watch` on a study of 10,000 runs, half of which have ended, and two are running."""
    arms = {f"arm-{number}": f"dot | softmax | bypass(alpha={number / 200})" for number in range(1, 100)}
    own = Study.of({**content(seeds=list(range(100))), "arms": {"dot": "dot | softmax", **arms}})
    folder.mkdir()
    moment = Moment(folder, own)
    moment.hold()
    moment.plan()
    moment.ledger.execute("PRAGMA synchronous=OFF")
    for run in moment.planned[:5000]:
        moment.end(run.arm, run.seed, 0.5)
    for run in moment.planned[5000:5002]:
        write(moment.begin(run.arm, run.seed), update(4, 1.0, 5.0))
    began = time.process_time()
    with WatchServer(folder) as server:
        first, looks = time.process_time() - began, []
        for run in moment.planned[5002 : 5002 + ROUNDS]:
            write(moment.begin(run.arm, run.seed), update(4, 1.0, 5.0))
            moment.end(run.arm, run.seed, 0.6)
            began = time.process_time()
            server.dump_state()
            looks.append(time.process_time() - began)
    moment.ledger.close()
    return [
        Row("watch, 10,000 runs, its start", "time", first, "the limit", LARGE, at_most(1)),
        Row("watch, 10,000 runs, a look", "time", min(looks[1:]), "the limit", LOOK, at_most(1)),
    ]


def measure(what: str, words: Sequence[str], limit: float, caches: Path | None = None) -> Row:
    """Run a command several times, with an empty cache each time if a folder for caches is given."""
    found = []
    for number in range(ROUNDS):
        cache = {} if caches is None else {"ATTNLAB_CACHE": str(caches / f"{what}-{number}")}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "attnlab", *words]
        done = subprocess.run(command, env={**os.environ, **cache}, check=False, stdout=subprocess.DEVNULL)
        if done.returncode > 1:  # 1 is an answer too: the planted studies have faults
            raise subprocess.CalledProcessError(done.returncode, command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return Row(what, "time", min(found), "the limit", limit, at_most(1))
