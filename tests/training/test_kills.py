"""kill -9 at random moments, and start again: the end is bit-identical, and no line of the metrics is lost or doubled.

`make soak` runs this file as a program: `python -m tests.training.test_kills 50`.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FEW = 2
TIMING = ("tokens_per_second", "seconds")
ROOT = Path(__file__).parents[2]


class Mortal:
    """The process that runs and kills."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.mortal"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=ROOT,
        )  # fmt: skip

    def start(self, folder: Path, seconds: float | None = None) -> int:
        """Run the run, perhaps killed after some time; return 0 or the signal."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join([str(folder), *([] if seconds is None else [f"{seconds:.4f}"])]) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        assert status in (0, -9), "the run failed; its traceback is on stderr"
        return status

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Return the metrics without what the clock says."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in line.items() if name not in TIMING} for line in lines]


def weights_of(folder: Path) -> dict[str, bytes]:
    """Return the files of the last checkpoint that the end depends on, byte for byte."""
    last = sorted((folder / "checkpoints").glob("step-*"))[-1]
    return {file.name: file.read_bytes() for file in last.iterdir() if file.suffix == ".safetensors"}


def check_same(folder: Path, whole: Path) -> None:
    """Compare a run that was killed with one that was not."""
    assert weights_of(folder) == weights_of(whole)
    keys = Counter((line["kind"], line["step"], line.get("name")) for line in lines_of(folder))
    assert max(keys.values()) == 1
    order = [json.dumps(line, sort_keys=True) for line in lines_of(folder)]
    assert sorted(order) == sorted(json.dumps(line, sort_keys=True) for line in lines_of(whole))
    for part in ("last", "best", "loss", "status"):
        results = [json.loads((one / "result.json").read_text(encoding="utf-8"))[part] for one in (folder, whole)]
        assert results[0] == results[1]


@pytest.fixture(scope="module")
def mortal() -> Iterator[Mortal]:
    process = Mortal()
    yield process
    process.close()


@pytest.fixture(scope="module")
def whole(mortal: Mortal, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert mortal.start(folder) == 0
    return folder


@pytest.mark.parametrize("number", range(FEW))
def test_a_killed_run_ends_as_one_that_was_not(number: int, mortal: Mortal, whole: Path, tmp_path: Path) -> None:
    draw = random.Random(number)
    for _ in range(2):
        mortal.start(tmp_path, draw.uniform(0.1, 1.0))
    mortal.start(tmp_path)
    check_same(tmp_path, whole)


def soak(num_runs: int, seed: int = 0) -> None:
    """Kill run after run at random moments, each until it ends by itself, and compare its end."""
    draw = random.Random(seed)
    num_kills = 0
    mortal = Mortal()
    with tempfile.TemporaryDirectory() as name:
        whole, again = Path(name) / "whole", Path(name) / "again"
        mortal.start(whole)
        began = time.perf_counter()
        mortal.start(again)
        longest = time.perf_counter() - began
        for number in range(num_runs):
            folder = Path(name) / f"run-{number}"
            # The first is killed in its first half, so that every run is killed at least once.
            moment = draw.uniform(0, longest / 2)
            while mortal.start(folder, moment):
                num_kills += 1
                moment = draw.uniform(0, 1.2 * longest)
            check_same(folder, whole)
            print(f"{number + 1} bit-identical finishes, {num_kills} kills", flush=True)
    mortal.close()
    print(f"{num_kills} kills at random moments, {num_runs} of {num_runs} runs ended bit-identical to one undisturbed;")
    print("no line of their metrics lost or doubled")


if __name__ == "__main__":
    soak(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
