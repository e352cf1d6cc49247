"""The process that has imported everything and forks a worker for each run: five seconds of imports are paid once.

Talked to in lines of JSON: {"id", "folder", "config", "watching", "threads"} starts a run, {"stop": true} asks all to
stop cleanly; it answers {"id", "pid"} and, when a worker has ended, {"id", "status"}. All of them end with the study.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from attnlab.training import Display, Run, Watching, build, train

PARENT_DIED = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""
FAILED, INTERRUPTED = 3, 4
POLL = 0.05


def end_with_parent() -> None:
    """Ask the system to kill this process when its parent has died, however that came."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)


def work(order: dict[str, Any]) -> int:
    """Train one run in this process, its words in a file; return the status of the process."""
    folder = Path(order["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        run = Run.of({**order["config"], "threads": order["threads"], "watching": Watching(**order["watching"])})
        with Display() as display:
            result = train(build(run, display.say), folder, display)
    except Exception:
        traceback.print_exc()
        return FAILED
    return INTERRUPTED if result.status == "interrupted" else 0


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
        os.setpgid(0, 0)  # Ctrl-C in the terminal is the study's to pass on
        end_with_parent()
        if os.getppid() != server:
            os._exit(FAILED)
        status = work(order)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve() -> None:
    """Take orders until the study ends."""
    end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    workers: dict[int, str] = {}
    waiting = b""
    is_open = True
    while is_open or workers:
        ready = select.select([0], [], [], POLL)[0] if is_open else []
        if ready:
            got = os.read(0, 2**20)
            is_open = bool(got)
            *lines, waiting = (waiting + got).split(b"\n")
            for line in lines:
                take(json.loads(line), workers)
        while workers:
            child, status = os.waitpid(-1, 0 if not is_open else os.WNOHANG)
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
    """Tell the study."""
    os.write(1, (json.dumps(facts) + "\n").encode())


if __name__ == "__main__":
    serve()
