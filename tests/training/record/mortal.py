"""Processes that die: at a chosen system call, or whenever the test kills them. Nothing of theirs is cleaned up."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from attnlab.training.record.checkpoint import Checkpoint, Checkpoints
from attnlab.training.record.lock import lock_folder
from attnlab.training.record.metrics import Metrics

# One server imports torch once; its forks start in milliseconds.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])

DEATH = 9


def checkpoint_of(step: int, shade: int = 0) -> Checkpoint:
    """Make a checkpoint that tells its step, and its shade, in each of its parts."""
    model = {"w": torch.arange(700) * step + shade, "b": torch.tensor(step + shade, dtype=torch.bfloat16)}
    return Checkpoint(step, model, {"m": torch.full((300,), float(step + shade))}, {"step": step, "shade": shade})


def is_same(one: Checkpoint, other: Checkpoint) -> bool:
    is_same_state = (one.step, one.state) == (other.step, other.state)
    return is_same_state and _are_same(one.model, other.model) and _are_same(one.optimizer, other.optimizer)


def _are_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )


def run_until(death: int, work: Callable[..., None], *arguments: Any) -> bool:
    """RunSpec work in a process that dies at its n-th touch of the disk; return whether it got to the end alive."""
    process = CONTEXT.Process(target=_die_at, args=(death, work, *arguments))
    process.start()
    process.join()
    assert process.exitcode in (0, DEATH)
    return process.exitcode == 0


def _die_at(death: int, work: Callable[..., None], *arguments: Any) -> None:
    left = death

    def touch() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(DEATH)

    write, fsync = os.write, os.fsync

    def mortal_write(descriptor: int, content: bytes) -> int:
        if left == 1:
            write(descriptor, content[: len(content) // 2])
        touch()
        return write(descriptor, content)

    def mortal_fsync(descriptor: int) -> None:
        touch()
        fsync(descriptor)

    os.write, os.fsync = mortal_write, mortal_fsync  # type: ignore[assignment]
    sys.addaudithook(lambda event, _: touch() if event.startswith(("os.", "shutil.", "open")) else None)
    work(*arguments)
    os._exit(0)


def write_checkpoint(folder: Path, step: int, shade: int, best_step: int | None) -> None:
    Checkpoints(folder, print).write(checkpoint_of(step, shade), best_step=best_step)


def train_for_ever(run: Path, done: Connection) -> None:
    """Go on from the last checkpoint, and tell each step whose checkpoint is written."""
    checkpoints = Checkpoints(run / "checkpoints", print)
    last = checkpoints.load_last()
    step = 0 if last is None else last.step
    metrics = Metrics(run / "metrics.jsonl", print, after=step)
    while True:
        step += 1
        for name in ("a", "b", "c"):
            metrics.write("train", step, {"name": name, "loss": 1 / step}, {"seconds": os.getpid()})
        metrics.sync()
        if step % 2 == 0:
            checkpoints.write(checkpoint_of(step), best_step=step - step % 7)
            done.send(step)


def hold(folder: Path, ready: Connection, with_child: bool) -> None:
    """Hold a run's lock until killed; a forked child, if asked for, goes on living."""
    with lock_folder(folder):
        child = os.fork() if with_child else 0
        if with_child and child == 0:
            ready.poll(None)
            os._exit(0)
        ready.send((os.getpid(), child))
        ready.poll(None)
