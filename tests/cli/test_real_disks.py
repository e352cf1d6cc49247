"""Every verb that writes, on a disk that is really full and in folders without permission; and files nobody may read.

Each command runs in a fork of this process, which has a small disk of its own, or no right to ignore permissions. A
fork of a process with threads, such as a worker of pytest-xdist, can wait forever: `make soak` has none.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from attnlab.cli import main
from tests.fuzz.driver import capture_output
from tests.fuzz.examples import TRAIN, write_examples
from tests.studies.in_process import train_here

pytestmark = pytest.mark.skipif(
    "ATTNLAB_SOAK" not in os.environ, reason="forks, which `make soak` does without threads"
)
PAGE = os.sysconf("SC_PAGE_SIZE")
NUM_PAGES = 256
NEW_MOUNTS_AND_USER = 0x00020000 | 0x10000000
CAPABILITIES = 0x20080522
IGNORE_PERMISSIONS = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: why no permission stops root."""
SMALL = "small"
WRITING = {
    "new": ["new", "cosine | softmax", "--out", f"{SMALL}/study.toml"],
    "recipes": ["recipes", "copy", "quickstart", "--out", f"{SMALL}/recipe.toml"],
    "export": ["export", "run", "--out", f"{SMALL}/model"],
    "report": ["report", "study", "--out", f"{SMALL}/report"],
    "figure": ["construct", "select", "--index", "0", "--figure", f"{SMALL}/figure.svg"],
    "register": ["register", "study.toml", "--out", f"{SMALL}/study"],
    "train": [*TRAIN, "--out", f"{SMALL}/run"],
    "run": ["run", "study.toml", "--out", f"{SMALL}/study", "--no-report"],
}
KEEPS_ITS_FOLDER = ("register", "train", "run", "report")
"""What was written stays, and the same command goes on with it."""
ONE_PAGE = ("new", "recipes")
"""Their files are smaller than three pages."""
READING = {
    "table.csv": ["judge", "table.csv"], "prose.txt": ["data", "prose.txt"], "study.toml": ["plan", "study.toml"],
    "run": ["export", "run", "--out", "new"], "run/config.json": ["generate", "run"],
    "study": ["compare", "study"], "study/ledger.sqlite": ["compare", "study"],
    "keys.csv": ["construct", "select-all", "--keys", "keys.csv"],
    "squad.json": ["score", "squad", "--data", "squad.json", "--predictions", "predictions.json"],
    "plugin.py": ["explain", "near | softmax", "--plugin", "plugin.py"],
}  # fmt: skip
Answer = tuple[int, str, list[str]]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Make a folder with an input of every kind, a run and a study, and with an empty folder."""
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        folder = Path(root) / "examples"
        patch.setenv("ATTNLAB_CACHE", str(Path(root) / "cache"))
        write_examples(folder)
        patch.chdir(folder)
        (folder / SMALL).mkdir()
        with capture_output():
            assert main([*TRAIN, "--out", "run"]) == 0
        yield folder


def answer_apart(folder: Path, argv: list[str], prepare: Callable[[], None]) -> Answer:
    """Run a command in a fork of this process; return its status, its errors, and what it leaves behind."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(writer, json.dumps(_answer(folder, argv, prepare)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(process, 0)
    status, errors, left = json.loads(answer)
    return status, errors, left


def _answer(folder: Path, argv: list[str], prepare: Callable[[], None]) -> Answer:
    try:
        prepare()
    except (OSError, subprocess.CalledProcessError) as error:
        return -1, str(error), []
    torch.set_num_threads(1)  # the threads of a process are not in its fork
    os.chdir(folder)  # what is mounted on a folder is seen by those who enter it afterwards
    before = {*folder.rglob("*")}
    with pytest.MonkeyPatch.context() as patch, capture_output() as (_, errors):
        train_here(patch)
        status = main(argv)
    left = sorted(str(path.relative_to(folder)) for path in {*folder.rglob("*")} - before)
    return status, errors.getvalue().decode(), left


def mount_disk(folder: Path, num_free: int) -> None:
    """Mount a disk of which a few pages are free, in a namespace that goes with its process."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", NEW_MOUNTS_AND_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    command = ["mount", "-t", "tmpfs", "-o", f"size={NUM_PAGES * PAGE},mode=755", "tmpfs", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "filler").write_bytes(bytes((NUM_PAGES - num_free) * PAGE))


def respect_permissions() -> None:
    """Give up the right of root to ignore permissions."""
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    _call("capget", header, sets)
    for part in (0, 1):  # those in use, and those that could be taken
        sets[part] &= ~IGNORE_PERMISSIONS
    _call("capset", header, sets)


def _call(name: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, name):
        raise OSError(f"this system has no {name}")
    if getattr(library, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name} is not allowed here")


def check(verb: str, answer: Answer, words: tuple[str, ...]) -> None:
    """Check that a command was refused in one sentence and has left nothing behind."""
    status, errors, left = answer
    if status == -1:
        pytest.skip(f"this system cannot make such a disk or folder: {errors}")
    assert status == 2, errors
    assert any(word in errors for word in words), errors
    assert errors.count("attnlab: ") == 1
    assert verb in KEEPS_ITS_FOLDER or left == []


@pytest.mark.parametrize(
    ("verb", "num_free"), [*((verb, 0) for verb in WRITING), *((verb, 3) for verb in WRITING if verb not in ONE_PAGE)]
)
def test_a_full_disk(place: Path, verb: str, num_free: int) -> None:
    answer = answer_apart(place, WRITING[verb], lambda: mount_disk(place / SMALL, num_free))
    check(verb, answer, ("No space left on device", "disk is full"))


@pytest.mark.parametrize("verb", WRITING)
def test_a_folder_that_may_not_be_written_to(place: Path, verb: str) -> None:
    (place / SMALL).chmod(0o555)
    answer = answer_apart(place, WRITING[verb], respect_permissions)
    check("", answer, ("ermission denied", "permission is denied"))


@pytest.mark.parametrize("name", READING)
def test_a_file_that_may_not_be_read(place: Path, name: str) -> None:
    mode = (place / name).stat().st_mode
    (place / name).chmod(0)
    try:
        answer = answer_apart(place, READING[name], respect_permissions)
    finally:
        (place / name).chmod(mode)
    check("", answer, ("ermission denied", "permission is denied", "cannot be read", "unable to open"))
