"""Disks that are full, folders that are read-only, files in the way: one clear sentence, and nothing is lost."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training.record.checkpoint import Checkpoints
from tests.training.record.mortal import checkpoint_of, is_same

SENTENCES = {
    "ENOSPC": "the disk is full; free some space and give the same command again",
    "EDQUOT": "the disk quota is used up; free some space",
    "EROFS": "the file system is read-only; choose another folder",
    "EACCES": "permission is denied; change the permissions of that folder",
    "EIO": "the disk reports input/output errors",
    "EMFILE": "Too many open files",
}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    found = Checkpoints(tmp_path / "run" / "checkpoints", print)
    for step in (10, 20):
        found.write(checkpoint_of(step), best_step=None)
    return found


def check_untouched(checkpoints: Checkpoints) -> None:
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == ["step-00000010", "step-00000020"]
    for step in (10, 20):
        assert is_same(checkpoints.load(step), checkpoint_of(step))
    checkpoints.write(checkpoint_of(30), best_step=None)
    assert checkpoints.steps() == [20, 30]


def fail(monkeypatch: pytest.MonkeyPatch, call: str, name: str, calls_before: int = 0) -> None:
    """Let a call of os fail with an error, but for the first few times."""
    number, real, left = getattr(errno, name), getattr(os, call), calls_before

    def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            return real(*arguments, **options)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, failing)


@pytest.mark.parametrize("step", [20, 30], ids=["same step", "next step"])
@pytest.mark.parametrize(
    ("call", "calls_before", "name"),
    [
        *[("write", 2, name) for name in SENTENCES],
        ("mkdir", 0, "EROFS"), ("write", 0, "ENOSPC"), ("fsync", 0, "EIO"), ("fsync", 3, "EIO"), ("rename", 0, "EIO")
    ],
    ids=[*SENTENCES, "mkdir", "first write", "first fsync", "folder's fsync", "rename"],
)  # fmt: skip
def test_a_write_that_fails_changes_nothing(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, call: str, calls_before: int, name: str, step: int
) -> None:
    with monkeypatch.context() as patch:
        fail(patch, call, name, calls_before)
        with pytest.raises(TrainingError) as error:
            checkpoints.write(checkpoint_of(step, shade=1), best_step=None)
    assert str(error.value).startswith(
        f"cannot write the checkpoint (0.0 MB) {checkpoints.folder / f'step-{step:08d}'}: {SENTENCES[name]}"
    )
    assert "\n" not in str(error.value)
    check_untouched(checkpoints)


def test_the_second_rename_fails(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if path.name.startswith(".writing-"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(TrainingError, match="the disk is full"):
        checkpoints.write(checkpoint_of(20, shade=1), best_step=None)
    monkeypatch.undo()
    check_untouched(checkpoints)


def test_ctrl_c_while_writing_leaves_no_litter(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.write(checkpoint_of(30), best_step=None)
    monkeypatch.undo()
    check_untouched(checkpoints)


def test_a_disk_that_takes_some_bytes_and_then_is_full(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, room = os.write, 2_000

    def write(descriptor: int, content: memoryview) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real(descriptor, content[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(TrainingError, match="the disk is full"):
        checkpoints.write(checkpoint_of(30), best_step=None)
    monkeypatch.undo()
    check_untouched(checkpoints)


def test_short_writes_are_finished(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:100]))
    checkpoints.write(checkpoint_of(30), best_step=None)
    assert is_same(checkpoints.load(30), checkpoint_of(30))


def test_an_old_one_that_cannot_be_removed_is_said(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(errno.EACCES, "Permission denied")

    said: list[str] = []
    checkpoints.say = said.append
    monkeypatch.setattr(shutil, "rmtree", refuse)
    checkpoints.write(checkpoint_of(30), best_step=None)
    assert said == [f"cannot remove the old checkpoint {checkpoints.folder / 'step-00000010'}: Permission denied"]
    assert checkpoints.steps() == [20, 30]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("not a folder")
    for folder in (tmp_path / "checkpoints", tmp_path / "checkpoints" / "deeper"):
        checkpoints = Checkpoints(folder, print)
        with pytest.raises(TrainingError, match=r"there is a file where a folder is needed; move it away.*\(at .*s\)"):
            checkpoints.write(checkpoint_of(1), best_step=None)
        with pytest.raises(
            TrainingError, match=r"cannot list the checkpoints in .* there is a file where a folder is needed"
        ):
            checkpoints.load_last()
    assert (tmp_path / "checkpoints").read_text() == "not a folder"


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="the path is too long for the file system; choose a shorter folder"):
        Checkpoints(tmp_path / ("x" * 300), print).write(checkpoint_of(1), best_step=None)


def test_a_folder_that_may_not_be_written_to(checkpoints: Checkpoints) -> None:
    checkpoints.folder.chmod(0o555)
    try:
        if os.access(checkpoints.folder, os.W_OK):
            pytest.skip("permissions do not bind this user")
        with pytest.raises(TrainingError, match="permission is denied"):
            checkpoints.write(checkpoint_of(30), best_step=None)
    finally:
        checkpoints.folder.chmod(0o755)
    check_untouched(checkpoints)


REAL = """
import subprocess, sys, torch
from pathlib import Path
from attnlab.errors import TrainingError
from attnlab.training.record.checkpoint import Checkpoint, Checkpoints
from attnlab.training.record.metrics import Metrics

run = Path(sys.argv[1])
metrics = Metrics(run / "metrics.jsonl", print)
checkpoints = Checkpoints(run / "checkpoints", print)
size = 50_000
def write(step):
    checkpoints.write(Checkpoint(step, {"w": torch.full((size,), step)}, {}, {}), best_step=None)
def expect(text, call, *arguments):
    try:
        call(*arguments)
    except TrainingError as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"no error: {text}")

write(1)
expect("the disk is full", write, 2)
assert [path.name for path in checkpoints.folder.iterdir()] == ["step-00000001"]
filler = open(run / "filler", "wb", buffering=0)
try:
    while filler.write(bytes(4096)):
        pass
except OSError:
    pass
def fill():
    for step in range(10_000):
        metrics.write("train", step, {"loss": 0.5, "pad": "x" * 100})
expect("the disk is full", fill)
lines = (run / "metrics.jsonl").read_bytes()
assert lines.endswith(b"\\n") or not lines
assert len(Metrics.read(run / "metrics.jsonl")) == lines.count(b"\\n")
filler.close()
(run / "filler").unlink()
size = 10
write(3)
metrics.close()
subprocess.run(["mount", "-o", "remount,ro", str(run)], check=True)
expect("the file system is read-only", write, 4)
expect("the file system is read-only", Metrics, run / "metrics.jsonl", print)
assert checkpoints.load_last().step == 3
assert checkpoints.load(1).model["w"].numel() == 50_000
"""


def test_a_disk_that_is_really_full_and_then_read_only(tmp_path: Path) -> None:
    """In a mount namespace of its own, which goes with its process."""
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-euc"]
    mount = 'mount -t tmpfs -o size=600k tmpfs "$1"; shift; exec "$@"'
    if not shutil.which("unshare"):
        pytest.skip("this system has no unshare")
    if subprocess.run([*own, mount, "-", tmp_path, "true"], capture_output=True).returncode:
        pytest.skip("this system lets no user mount a small disk")
    done = subprocess.run(
        [*own, mount, "-", tmp_path, sys.executable, "-c", REAL, tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
