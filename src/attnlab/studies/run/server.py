"""The process that has imported everything and forks a worker for each run: five seconds of imports are paid once.

Talked to in lines of JSON: {"id", "folder", "config"} starts a run, {"stop": true} asks all to
stop cleanly; it answers {"id", "pid"} and, when a worker has ended, {"id", "status"}. All of them end with the study.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, TrainingError
from attnlab.training import Display, RunSpec, build, train
from attnlab.training.record import locked

PARENT_DIED = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""
FAILED, INTERRUPTED = 3, 4
POLL = 0.05
PATIENCE = 20.0
"""Seconds that a worker waits for its run's folder: one whose study was killed may not be quite gone yet."""
LOG = "log.txt"
ERROR = "attnlab: "


def end_with_parent() -> None:
    """Ask the system to kill this process when its parent has died, however that came."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)


def work(order: dict[str, Any]) -> int:
    """Train one run in this process, its words in a file; return the status of the process."""
    try:
        folder = Path(order["folder"])
        folder.mkdir(parents=True, exist_ok=True)
        log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(log, 1)
        os.dup2(log, 2)
        wait_for(folder)
        run = RunSpec.of(order["config"])
        with Display() as display:
            result = train(build(run, display.say), folder, display)
    except AttnlabError as error:
        print(f"{ERROR}{error}", file=sys.stderr)
        return FAILED
    except Exception:
        traceback.print_exc()
        return FAILED
    return INTERRUPTED if result.status == "interrupted" else 0


def wait_for(folder: Path) -> None:
    """Wait until no other process works in a run's folder; one that stays is met again where the run begins."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with locked(folder):
                return
        except TrainingError:
            time.sleep(POLL)


def fork(order: dict[str, Any]) -> int:
    """Start a worker; return its process."""
    server = os.getpid()
    child = os.fork()
    if child:
        return child
    status = FAILED
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        end_with_parent()
        if os.getppid() == server:
            status = work(order)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve() -> None:
    """Take orders until the study ends; should it end without a word, its workers stop as if they had been asked."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    workers: dict[int, str] = {}
    waiting = b""
    is_open = True
    while is_open or workers:
        if is_open and select.select([0], [], [], POLL)[0]:
            got = os.read(0, 2**20)
            *lines, waiting = (waiting + got).split(b"\n")
            for line in lines:
                take(json.loads(line), workers)
            if not got:
                is_open = False
                take({"stop": True}, workers)
        while workers:
            child, status = os.waitpid(-1, os.WNOHANG if is_open else 0)
            if not child:
                break
            answer(id=workers.pop(child), status=os.waitstatus_to_exitcode(status))


def take(order: dict[str, Any], workers: dict[int, str]) -> None:
    """Carry out an order."""
    if order.get("stop"):
        for child in workers:
            os.kill(child, signal.SIGTERM)
        return
    child = fork(order)
    workers[child] = order["id"]
    answer(id=order["id"], pid=child)


def answer(**facts: Any) -> None:
    """Tell the study, where it still listens."""
    try:
        os.write(1, (json.dumps(facts) + "\n").encode())
    except BrokenPipeError:
        return


if __name__ == "__main__":
    for plugin in sys.argv[1:]:
        runpy.run_path(plugin, run_name="attnlab_plugin")
    serve()
