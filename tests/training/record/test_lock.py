"""One process a run: the second is refused by name, and a dead one holds nothing."""

import errno
import fcntl
import os
import platform
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training import build, train
from attnlab.training.record import lock
from attnlab.training.record.lock import lock_folder, refuse_foreign_files
from tests.training.record.mortal import CONTEXT, hold
from tests.training.runs import quiet, small


@contextmanager
def holding(folder: Path, with_child: bool = False) -> Iterator[tuple[Any, int, Any]]:
    """Have another process hold the lock; give it, the id of its child, and the pipe that ends both."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=hold, args=(folder, theirs, with_child))
    process.start()
    theirs.close()
    pid, child = ours.recv()
    assert pid == process.pid
    try:
        yield process, child, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def test_the_folder_is_made_and_can_be_locked_again(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "a"
    for _ in range(2):
        with lock_folder(run):
            assert f'"pid": {os.getpid()}' in (run / "lock").read_text()
        assert (run / "lock").read_text() == ""


def test_the_second_process_is_told_who_is_there(tmp_path: Path) -> None:
    with holding(tmp_path) as (process, _, _):
        wanted = f"another process works in {tmp_path}: process {process.pid} on {platform.node()}, since "
        with pytest.raises(TrainingError, match=re.escape(wanted)), lock_folder(tmp_path):
            pytest.fail("two processes in one folder")


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    with holding(tmp_path) as (process, _, _):
        process.kill()
        process.join()
        assert (tmp_path / "lock").read_text() != ""
        with lock_folder(tmp_path):
            assert f'"pid": {os.getpid()}' in (tmp_path / "lock").read_text()


def test_a_child_that_outlives_its_killed_parent_holds_nothing(tmp_path: Path) -> None:
    with holding(tmp_path, with_child=True) as (process, child, _):
        with pytest.raises(TrainingError, match=f"process {process.pid} on"), lock_folder(tmp_path):
            pytest.fail("a fork gave the lock away")
        process.kill()
        process.join()
        os.kill(child, 0)
        with lock_folder(tmp_path):
            pass
        os.kill(child, signal.SIGKILL)


def test_the_same_process_cannot_lock_twice(tmp_path: Path) -> None:
    with lock_folder(tmp_path):
        with pytest.raises(TrainingError, match=f"process {os.getpid()} on"), lock_folder(tmp_path):
            pytest.fail("lock_folder twice")
        with pytest.raises(TrainingError, match="another process works in"), lock_folder(tmp_path):
            pytest.fail("the first refusal freed the lock")


def test_an_error_inside_frees_the_lock_and_stays_itself(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="mine"), lock_folder(tmp_path):
        raise OSError("mine")
    with lock_folder(tmp_path):
        pass


def test_a_holder_that_has_not_yet_written_its_name(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(TrainingError, match="it has not written its process id yet"), lock_folder(tmp_path):
            pytest.fail("two holders")


def test_where_the_folder_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=r"cannot lock .*file: there is a file where a folder is needed"):
        lock_folder(tmp_path / "file").__enter__()
    with pytest.raises(TrainingError, match=r"cannot lock .*: the path is too long"):
        lock_folder(tmp_path / ("x" * 300)).__enter__()
    (tmp_path / "run" / "lock").mkdir(parents=True)
    with pytest.raises(TrainingError, match=r"cannot lock .*run: there is a folder where a file is needed"):
        lock_folder(tmp_path / "run").__enter__()


@pytest.mark.parametrize(
    ("name", "sentence"), [("EACCES", "permission is denied"), ("EROFS", "the file system is read-only")]
)
def test_where_nothing_may_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    def refuse(path: Path, *rest: int) -> int:
        raise OSError(getattr(errno, name), "no", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(TrainingError, match=f"cannot lock the run's folder {tmp_path}: {sentence}"):
        lock_folder(tmp_path).__enter__()


def test_a_full_disk_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(TrainingError, match=r"cannot lock .* the disk is full"):
            lock_folder(tmp_path).__enter__()
    with lock_folder(tmp_path):
        pass


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(TrainingError, match=r"has no locks \(No locks available\).*choose a folder on a local disk"):
        lock_folder(tmp_path).__enter__()


def test_a_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    with pytest.raises(TrainingError, match=r"cannot be locked on .*; train on Linux or macOS, or in WSL"):
        lock_folder(tmp_path).__enter__()


@pytest.mark.parametrize("settings", [{"trackers": ("wandbb",)}, {"sample_every": 1, "num_tokens": 10_000}], ids=str)
def test_a_run_that_is_refused_leaves_no_folder(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(TrainingError):
        train(build(small("clm", **settings)), tmp_path / "run", quiet())
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_or_was_written_stays(tmp_path: Path) -> None:
    for name, content in (("old", ""), ("written", "a line")):
        folder = tmp_path / name
        if name == "old":
            folder.mkdir()
        with suppress(TrainingError), lock_folder(folder):
            (folder / "metrics.jsonl").write_text(content)
            raise TrainingError("refused")
        assert (folder / "metrics.jsonl").exists()


def test_a_folder_with_files_of_others_is_refused_and_unchanged(tmp_path: Path) -> None:
    refuse_foreign_files(tmp_path / "missing", ("config.json",), "run")
    (tmp_path / ".hidden").touch()
    refuse_foreign_files(tmp_path, ("config.json",), "run")
    (tmp_path / "homework.doc").touch()
    (tmp_path / "notes").mkdir()
    with pytest.raises(TrainingError, match=r"holds other files \(homework.doc and 1 more\) and no run; give a new or"):
        refuse_foreign_files(tmp_path, ("config.json",), "run")
    for name in ("config.json", "lock"):
        (tmp_path / name).touch()
        refuse_foreign_files(tmp_path, ("config.json",), "run")
        (tmp_path / name).unlink()
