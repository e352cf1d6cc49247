"""Run one broken input through `attnlab.cli.verbs.main`, in this process, and find what is wrong with the answer."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import huggingface_hub.constants as hub
import pytest

from attnlab.cli.verbs import main
from attnlab.mechanisms import REGISTRY
from tests.studies.in_process import train_here

from .examples import train_examples, write_examples
from .kinds import KINDS, Case
from .place import Place

SECONDS = 30
"""A longer answer counts as a hang."""
LEAST_SHARE = 0.05
"""The share of a core that a process gets at least on a busy machine; one that uses less waits for something."""
MEMORY = 12 << 30
"""Bytes that a worker may allocate: an input that asks for more gets a MemoryError, not the machine's memory."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that could drive a terminal or turn text around; nothing prints them."""
ORIGIN = re.compile(r"src/(attnlab/\S+\.py\", line \d+)")
"""The lines of attnlab in the log of a bug."""
TRAINED = ("saved models", "checkpoints", "runs")


class Hang(BaseException):
    """An input that was not answered in time; not an Exception, so that no handler of the command line takes it."""


class Fuzzer:
    """A folder with valid examples, and the inputs made from them; the same seed and number give the same input."""

    def __init__(self, root: Path, seed: int, kinds: Iterable[str] = tuple(KINDS)) -> None:
        self.seed = seed
        self.examples, self.temporary = root / "examples", root / "tmp"
        root.mkdir(parents=True, exist_ok=True)
        self.temporary.mkdir()
        write_examples(self.examples)
        with contextlib.chdir(self.examples), _environment(root), capture_output():
            main(["doctor"])  # compiles the loops, which may take longer than an input
            if any(kind in TRAINED for kind in kinds):
                train_examples(self.examples)
        self.root, self.place = root, Place(self.examples, root / "case")

    def run(self, kind: str, number: int) -> tuple[int, str]:
        """Run one input; return its status and what is wrong with the answer."""
        self.place.restore()
        random = Random(f"{self.seed}/{kind}/{number}")
        case = KINDS[kind][1](random, self.place.folder)
        before = self.place.list_files()
        registry = dict(REGISTRY)
        with contextlib.chdir(self.place.folder), _environment(self.root), capture_output() as streams:
            status, problem = _answer(case)
        REGISTRY.clear()
        REGISTRY.update(registry)
        output = "".join(stream.getvalue().decode("utf-8", "surrogatepass") for stream in streams)
        is_anywhere = status != 2 and "." in case.writes
        after = set() if is_anywhere else self.place.list_files() - before
        left = [path for path in after if status == 2 or not path.startswith(case.writes or ("\0",))]
        logs = [file for file in self.temporary.iterdir() if status == 3 and file.suffix == ".log"]
        left += [file.name for file in self.temporary.iterdir() if file not in logs]
        origin = "".join(f" at {frame}" for log in logs for frame in ORIGIN.findall(log.read_text())[-2:])
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()
        faults = list(filter(None, [
            problem,
            "a traceback" if "Traceback (most recent call last)" in output else "",
            f"status {status}{origin}" if not problem and status not in case.statuses else "",
            "status 2 without a message" if status == 2 and "attnlab: " not in output else "",
            f"left behind {left[:3]}" if left else "",
            f"printed {match.group()!r}" if (match := CONTROL.search(output.replace("\rLoading weights", ""))) else "",
        ]))  # fmt: skip
        if not faults:
            return status, ""
        command = " ".join(word if len(word) < 60 else word[:60] + "…" for word in case.argv)
        return status, f"{kind}:{number} {'; '.join(faults)}\n    {command!r}\n    {output[-1000:]!r}"


def work(inputs: list[tuple[str, int]], seed: int) -> None:
    """Run inputs one after the other in this process; write a line of JSON before and after each."""
    import torch

    torch.set_num_threads(1)
    # Libraries and child processes may write to descriptor 1, which therefore is no longer the pipe.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory(prefix="attnlab-fuzz-") as root:
        fuzzer = Fuzzer(Path(root) / "fuzz", seed, {kind for kind, _ in inputs})
        for kind, number in inputs:
            print("{}", file=answers, flush=True)
            status, fault = fuzzer.run(kind, number)
            print(json.dumps({"status": status, "fault": fault}), file=answers, flush=True)


def _answer(case: Case) -> tuple[int, str]:
    with pytest.MonkeyPatch.context() as patch, _limit_time(0 if case.has_workers else LEAST_SHARE):
        if not case.has_workers:
            train_here(patch)
        try:
            return main(case.argv), ""
        except Hang as error:
            return -1, f"hang: {error}"
        except BaseException as error:
            return -1, f"raised {type(error).__name__}: {error}"


@contextlib.contextmanager
def _limit_time(least_share: float = LEAST_SHARE) -> Iterator[None]:
    """Raise `Hang` after `SECONDS`; on a busy machine, those in which this process computes."""
    began = os.times()

    def stop(number: int, frame: Any) -> None:
        now = os.times()
        computed, passed = now.user + now.system - began.user - began.system, now.elapsed - began.elapsed
        if computed > SECONDS or computed < passed * least_share:
            raise Hang(f"more than {SECONDS} s, in {frame.f_code.co_filename}:{frame.f_lineno}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def capture_output() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace standard output and error with files that encode, and so refuse, what a pipe would."""
    streams = io.BytesIO(), io.BytesIO()
    wrapped = [io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in streams]
    with contextlib.redirect_stdout(wrapped[0]), contextlib.redirect_stderr(wrapped[1]):
        yield streams
        for stream in wrapped:
            stream.flush()
            stream.detach()


@contextlib.contextmanager
def _environment(root: Path) -> Iterator[None]:
    """Keep caches, temporary files and the home folder inside the fuzzer's folder, and the network out."""
    before, folder = dict(os.environ), tempfile.tempdir
    os.environ.update(HOME=str(root), ATTNLAB_CACHE=str(root / "cache"), TMPDIR=str(root / "tmp"), BROWSER="true")
    tempfile.tempdir = str(root / "tmp")
    stdin, sys.stdin = sys.stdin, io.StringIO()
    is_offline, hub.HF_HUB_OFFLINE = hub.HF_HUB_OFFLINE, True  # read from the environment when it was imported
    try:
        yield
    finally:
        sys.stdin, tempfile.tempdir, hub.HF_HUB_OFFLINE = stdin, folder, is_offline
        os.environ.clear()
        os.environ.update(before)
