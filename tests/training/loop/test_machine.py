"""Threads, and what is said when memory or the disk does not suffice."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.machine import num_cores
from attnlab.training import build, train
from attnlab.training.loop.machine import choose_threads, explain_memory_errors
from attnlab.training.record.lock import lock_folder
from tests.training.runs import assert_same_run, quiet, small

ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
)


@pytest.mark.parametrize(
    ("asked", "said", "ranks", "operations", "threads"),
    [
        (3, "7", 1, 0, 3),
        (None, "7", 1, 0, 7),
        (None, "", 1, 0, 1),
        (None, "many", 1, 1e9, 1),
        (None, "", 1, 4e9, 2),
        (None, "", 1, 1e15, 8),
        (None, "", 4, 1e15, 2),
        (None, "", 100, 1e15, 1),
    ],
    ids=["asked", "environment", "small", "no number", "two", "all", "ranks", "many ranks"],
)
def test_threads_are_those_that_pay(
    asked: int | None, said: str, ranks: int, operations: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    monkeypatch.setattr("attnlab.training.loop.machine.num_cores", lambda: 8)
    assert choose_threads(asked, ranks, operations) == threads


def test_a_wrong_number_of_threads_is_refused() -> None:
    assert num_cores() >= 1
    for asked in (0, -2):
        with pytest.raises(TrainingError, match=f"threads must be at least 1, not {asked}"):
            choose_threads(asked, 1, 0)


@pytest.mark.parametrize(
    "error", [RuntimeError(ALLOCATOR), MemoryError(), RuntimeError("CUDA out of memory. Tried\nmore")],
    ids=["cpu", "python", "gpu"],
)  # fmt: skip
def test_a_lack_of_memory_is_one_sentence(error: Exception) -> None:
    with pytest.raises(TrainingError, match=r"out of memory .* smaller micro_batch") as caught, explain_memory_errors():
        raise error
    assert "\n" not in str(caught.value)


def test_other_errors_are_left_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes"), explain_memory_errors():
        raise RuntimeError("shapes do not fit")


def test_a_run_out_of_memory_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small(checkpoint_every=2, log_every=1)
    job, calls = build(run), []

    def full(module: Any, args: Any) -> None:
        calls.append(1)
        if len(calls) == 5:
            raise RuntimeError(ALLOCATOR)

    job.model.register_forward_pre_hook(full)
    with pytest.raises(TrainingError, match="out of memory"):
        train(job, tmp_path / "full", quiet())
    train(build(run), tmp_path / "full", quiet())
    train(build(run), tmp_path / "whole", quiet())
    assert_same_run(tmp_path / "full", tmp_path / "whole")


@pytest.mark.parametrize("number", [2, 9, 20])
def test_a_full_disk_is_said_and_nothing_is_lost(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small(checkpoint_every=1, log_every=1)
    write, calls = os.write, []

    def full(descriptor: int, content: Any) -> int:
        calls.append(1)
        if len(calls) > number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TrainingError, match="the disk is full; free some space and give the same command again"):
        train(build(run), tmp_path / "full", quiet())
    monkeypatch.undo()
    train(build(run), tmp_path / "full", quiet())
    train(build(run), tmp_path / "whole", quiet())
    assert_same_run(tmp_path / "full", tmp_path / "whole")


def test_a_tokenizer_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = build(small())
    for error in (OSError(errno.ENOSPC, "No space left"), Exception("No space left on device (os error 28)")):

        def refuse(folder: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(job.tokenizer, "save_pretrained", refuse)
        with pytest.raises(TrainingError, match=r"cannot write the tokenizer to .*(disk is full|No space left)"):
            train(job, tmp_path, quiet())


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    job = build(small())
    with (
        lock_folder(tmp_path),
        pytest.raises(TrainingError, match=r"another process works in .*; wait for it, stop it"),
    ):
        train(job, tmp_path, quiet())
    assert train(job, tmp_path, quiet()).status == "finished"


def test_a_file_in_the_folders_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(TrainingError, match="there is a file where a folder is needed"):
        train(build(small()), tmp_path / "file", quiet())
