"""Processes killed at every touch of the disk and at random moments: nothing that was whole is ever lost."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from attnlab.training.record.checkpoint import Checkpoint, Checkpoints
from attnlab.training.record.metrics import Metrics
from tests.training.record.mortal import CONTEXT, checkpoint_of, is_same, run_until, train_for_ever, write_checkpoint


def prepare(folder: Path, *steps: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for step in steps:
        write_checkpoint(folder, step, shade=0, best_step=10)


def last_of(folder: Path) -> Checkpoint:
    said: list[str] = []
    last = Checkpoints(folder, said.append).load_last()
    assert said == [], "a kill damages nothing"
    assert last is not None
    return last


def check_goes_on(folder: Path, before: int) -> None:
    """Write one more, as the next process does, and see that nothing is left over."""
    write_checkpoint(folder, 90, shade=0, best_step=10)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted({"step-00000010", f"step-{before:08d}", "step-00000090"})


def test_killed_while_writing_the_next(tmp_path: Path) -> None:
    death, has_lived = 0, False
    while not has_lived:
        death += 1
        prepare(tmp_path, 10, 20, 30)
        has_lived = run_until(death, write_checkpoint, tmp_path, 40, 0, 10)
        last = last_of(tmp_path)
        assert is_same(last, checkpoint_of(last.step))
        assert last.step in ((40,) if has_lived else (30, 40))
        assert is_same(Checkpoints(tmp_path, print).load(10), checkpoint_of(10))
        check_goes_on(tmp_path, last.step)
    assert death > 20


def test_killed_while_replacing_the_only_one(tmp_path: Path) -> None:
    death, has_lived, shades = 0, False, []
    while not has_lived:
        death += 1
        prepare(tmp_path, 10)
        has_lived = run_until(death, write_checkpoint, tmp_path, 10, 7, 10)
        last = last_of(tmp_path)
        shades.append(last.state["shade"])
        assert is_same(last, checkpoint_of(10, last.state["shade"]))
        check_goes_on(tmp_path, 10)
    assert shades == sorted(shades)
    assert set(shades) == {0, 7}


def test_killed_again_while_putting_right_the_first_kill(tmp_path: Path) -> None:
    death, has_lived = 0, False
    while not has_lived:
        death += 1
        prepare(tmp_path, 10)
        shutil.copytree(tmp_path / "step-00000010", tmp_path / ".writing-step-00000010-01234567")
        (tmp_path / "step-00000010").rename(tmp_path / ".replaced-step-00000010")
        has_lived = run_until(death, write_checkpoint, tmp_path, 20, 0, 10)
        last = last_of(tmp_path)
        assert is_same(last, checkpoint_of(last.step))
        check_goes_on(tmp_path, last.step)


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    newest = 0
    for _ in range(5):
        ours, theirs = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=train_for_ever, args=(tmp_path, theirs))
        process.start()
        theirs.close()
        done = ours.recv()
        time.sleep(generator.uniform(0, 0.06))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        while ours.poll():
            try:
                done = ours.recv()
            except EOFError:
                break
        last = last_of(tmp_path / "checkpoints")
        assert last.step >= done > newest
        assert is_same(last, checkpoint_of(last.step))
        newest = last.step
    lines = Metrics.read(tmp_path / "metrics.jsonl")
    found = [(line["step"], line["name"]) for line in lines]
    wanted = [(step, name) for step in range(1, newest + 3) for name in "abc"]
    assert newest * 3 <= len(found) <= len(wanted)
    assert found == wanted[: len(found)], "none lost, none doubled, none out of order"
    assert all(line["loss"] == 1 / line["step"] for line in lines)
