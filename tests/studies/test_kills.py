"""A study whose driver is killed with -9 at random moments, and started again until it ends: the ledger is the same.

`make soak` runs this file as a program: `python -m tests.studies.test_kills 20`, and again with `search` after it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attnlab.cli.plugin import load_plugin
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.study import Study

from .samples import STUDY, quiet

ROOT = Path(__file__).parents[2]
TIMING = ("tokens_per_second", "seconds")
SMALL = (
    STUDY.replace("steps = 4", "steps = 40")
    .replace('slow = { mechanism = "cosine | softmax", set = { "optimizer.lr" = 1e-3 } }', "")
    .replace("dot | softmax | bypass(alpha=0.5)", "dot | cubed(divide=n)")
)
OWN = """
from dataclasses import dataclass
import torch
from attnlab import Weights, stage

@stage("cubed")
@dataclass(frozen=True)
class Cubed(Weights):
    def __call__(self, scores, n, p):
        return torch.relu(scores) ** 3
"""
SEARCHED = (
    STUDY.replace("steps = 4", "steps = 40")
    .replace('slow = { mechanism = "cosine | softmax", set = { "optimizer.lr" = 1e-3 } }', "")
    .replace("[data.recall]", '[search]\nover = { "optimizer.lr" = [1e-3, 1e-2] }\nextend = true\n\n[data.recall]')
    .replace('examples=20"', 'examples=20"\ntune = "embedded:mqar?vocab=32&length=24&pairs=4&examples=20&seed=3"')
)
LARGE = STUDY.replace("steps = 4", "steps = 120").replace("seeds = [1, 2]", "seeds = [1, 2, 3, 4, 5]")


def start(file: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a study with two workers."""
    command = [sys.executable, "-m", "attnlab", "run", str(file), "--out", str(out), "--workers", "2", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (out.parent / f"{out.name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment)


def processes_in(folder: Path) -> list[int]:
    """List the servers and workers whose study is in a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            opened = [os.readlink(link) for link in (place / "fd").iterdir()]
        except OSError:
            continue
        if any(path.startswith(f"{folder}/") for path in opened) and int(place.name) != os.getpid():
            found.append(int(place.name))
    return found


def children_of(process: int) -> list[int]:
    """List the processes below one, all the way down."""
    try:
        tasks = Path(f"/proc/{process}/task").glob("*/children")
        own = [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:
        return []
    return [*own, *(below for child in own for below in children_of(child))]


def kill(driver: subprocess.Popen[bytes]) -> None:
    """Kill a driver with -9; nothing of its own may outlive it for long."""
    below = children_of(driver.pid)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    deadline = time.monotonic() + 10
    while any(is_alive(process) for process in below):
        assert time.monotonic() < deadline, f"processes outlive their study: {below}"
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def plain(text: str) -> Any:
    """Read JSON without what the clock says."""
    return {name: value for name, value in json.loads(text).items() if name not in TIMING}


def content_of(out: Path) -> dict[str, Any]:
    """Return what a ledger holds of the results, without times and attempts."""
    base = sqlite3.connect(f"file:{out / 'ledger.sqlite'}?mode=ro", uri=True)
    try:
        runs = base.execute("SELECT id, arm, size, phase, seed, config FROM runs ORDER BY id").fetchall()
        results = base.execute("SELECT run, status, result FROM results ORDER BY run").fetchall()
        metrics = base.execute("SELECT run, kind, step, name, line FROM metrics ORDER BY 1, 2, 3, 4").fetchall()
        scores = base.execute(
            "SELECT run, name, ids, clusters, scores FROM scores JOIN examples USING (run) ORDER BY 1, 2"
        ).fetchall()
        pairings = base.execute("SELECT run, hashes FROM pairings ORDER BY 1").fetchall()
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert base.execute("SELECT COUNT(*) FROM failures").fetchone() == (0,)
    finally:
        base.close()
    return {
        "runs": runs, "results": [(run, status, plain(result)) for run, status, result in results],
        "metrics": [(*key, plain(line)) for *key, line in metrics], "scores": scores, "pairings": pairings,
    }  # fmt: skip


def check_same(out: Path, whole: Path) -> None:
    """Compare a study that was killed with one that was not."""
    ours, theirs = content_of(out), content_of(whole)
    assert len(ours["results"]) == len(ours["runs"])
    keys = Counter(tuple(line[:4]) for line in ours["metrics"])
    assert max(keys.values()) == 1
    lines = [json.loads(line) for run, *_ in ours["runs"] for line in metrics_of(out / "runs" / run)]
    assert len(lines) == len(ours["metrics"])
    assert ours == theirs


def metrics_of(run: Path) -> list[str]:
    """Return the lines of a run's metrics."""
    return (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()


def finish(file: Path, out: Path, *more: str) -> float:
    """Run a study to its end; return the seconds that it took."""
    began = time.monotonic()
    assert start(file, out, *more).wait() == 0, (out.parent / f"{out.name}.log").read_text()
    return time.monotonic() - began


def num_traces(out: Path) -> int:
    """Count what runs have left so far."""
    return sum(1 for kind in ("checkpoints/step-*", "result.json") for _ in out.glob(f"runs/*/{kind}"))


def await_work(driver: subprocess.Popen[bytes], out: Path, draw: random.Random) -> bool:
    """Wait for some moment after runs have left something new; tell whether the study is still there."""
    wanted = num_traces(out) + draw.randint(1, 6)
    while num_traces(out) < wanted and driver.poll() is None:
        time.sleep(0.05)
    time.sleep(draw.uniform(0, 0.4))
    assert driver.poll() in (None, 0)
    return driver.poll() is None


def kill_at_work(driver: subprocess.Popen[bytes], out: Path, draw: random.Random) -> bool:
    """Kill a study at some moment; tell whether it was still there."""
    is_there = await_work(driver, out, draw)
    if is_there:
        kill(driver)
        assert not processes_in(out)
    return is_there


def note_audits(out: Path, mechanisms: list[str]) -> None:
    """Let a ledger know that mechanisms are sound, which would take the first start some seconds to find."""
    out.mkdir()
    ledger = Ledger(out / "ledger.sqlite")
    for mechanism in mechanisms:
        ledger.add_audit(mechanism, True, True, [])
    ledger.close()


def test_a_study_that_was_killed_and_stopped_ends_as_one_that_was_not(
    tmp_path: Path, own_stages: None, here: None
) -> None:
    file, out, own, draw = tmp_path / "study.toml", tmp_path / "out", tmp_path / "own.py", random.Random(0)
    file.write_text(SMALL, encoding="utf-8")
    own.write_text(OWN, encoding="utf-8")
    plugin = ("--plugin", str(own))
    note_audits(out, ["dot | softmax", "dot | cubed(divide=n)"])
    assert kill_at_work(start(file, out, *plugin), out, draw)

    stopped = start(file, out, *plugin)
    assert await_work(stopped, out, draw)
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait(120) == 130
    assert not processes_in(out)
    said = (tmp_path / "out.log").read_text(encoding="utf-8")
    assert "stopping: every active run writes a checkpoint" in said
    assert "the same command resumes the study" in said

    # Trained in this process instead: what starts and ends a run has no part in its numbers.
    load_plugin(str(own))
    for folder in (out, tmp_path / "whole"):
        Study.load(file, plugins=[str(own)]).run(folder, say=quiet)
    check_same(out, tmp_path / "whole")


def soak(num_kills: int, text: str = LARGE, seed: int = 0) -> None:
    """Kill studies until so many kills have met one alive, and compare the ends."""
    draw, done, num_studies = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        file = folder / "study.toml"
        file.write_text(text, encoding="utf-8")
        longest = finish(file, folder / "whole")
        print(f"left alone, a study takes {longest:.0f} s", flush=True)
        while done < num_kills:
            out = folder / f"study-{num_studies}"
            is_over = False
            while not is_over and done < num_kills:
                driver = start(file, out)
                if draw.random() < 0.3:  # at any moment, also while it only begins
                    time.sleep(draw.uniform(0, longest / 2))
                is_over = not kill_at_work(driver, out, draw)
                done += not is_over
            finish(file, out)
            check_same(out, folder / "whole")
            num_studies += 1
            print(f"{num_studies} studies with the same ledger, {done} kills", flush=True)
    print(
        f"{done} kills of a study at random moments; {num_studies} of {num_studies} ended with the ledger of one that"
    )
    print("was left alone, to the bit: no row lost or doubled, no process left behind")


if __name__ == "__main__":
    soak(int(sys.argv[1]) if len(sys.argv) > 1 else 20, SEARCHED if "search" in sys.argv else LARGE)
