"""A process that has imported everything and forks a worker for each run: five seconds of imports are paid once.

It reads lines of JSON: a `RunOrder` starts a run, {"stop": true} asks all runs to end. It writes a `RunEvent` when a
worker has started and when it has ended. All of these processes end with the study.
"""

import json
import os
import platform
import runpy
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, TrainingError
from attnlab.training import Display, RunSpec, build, train
from attnlab.training.record.files import open_file
from attnlab.training.record.lock import lock_folder

from .parent import end_with_parent
from .workers import RunEvent, RunOrder
from .workload import note_operations

FAILED, INTERRUPTED = 3, 4
"""Exit statuses of a worker."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
POLL = 0.05
PATIENCE = 20.0
"""Seconds that a worker waits for its run's folder, which a worker of a killed study may still lock."""
LOG = "log.txt"
ERROR = "attnlab: "
Work = Callable[[Path, dict[str, Any]], bool]
"""The work of a worker, given a folder and a config; it returns whether it was interrupted."""


def serve(work: Work) -> None:
    """Take orders until the study ends; if its process dies, the workers stop as after a stop message."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    orders: dict[int, RunOrder] = {}
    unread = b""
    is_open = True
    while is_open or orders:
        if is_open and select.select([0], [], [], POLL)[0]:
            received = os.read(0, 2**20)
            *lines, unread = (unread + received).split(b"\n")
            for message in map(json.loads, lines if received else [b'{"stop": true}']):
                if "stop" in message:
                    for child in orders:
                        os.kill(child, signal.SIGTERM)
                    continue
                order = RunOrder(**message)
                child = _fork(order, work)
                orders[child] = order
                _report(RunEvent(order.id, "started", f"{platform.node()}:{child}", child))
            is_open = bool(received)
        while orders:
            child, status = os.waitpid(-1, os.WNOHANG if is_open else 0)
            if not child:
                break
            _report(describe_end(orders.pop(child), os.waitstatus_to_exitcode(status)))


def describe_end(order: RunOrder, status: int) -> RunEvent:
    """Return the event of a worker that has ended; if it failed, the reason is the last line of its log."""
    if status == 0:
        return RunEvent(order.id, "finished")
    if status in (INTERRUPTED, -signal.SIGTERM):
        return RunEvent(order.id, "interrupted")
    if status < 0:
        hint = "; it may have run out of memory" if status == -signal.SIGKILL else ""
        return RunEvent(order.id, "failed", f"its process was ended by signal {-status}{hint}")
    log = Path(order.folder) / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    reason = lines[-1].removeprefix(ERROR) if lines else f"its process ended with status {status}"
    return RunEvent(order.id, "failed", reason)


def train_run(folder: Path, config: dict[str, Any]) -> bool:
    """Train one run in this process; return whether it was interrupted."""
    wait_for_folder(folder)
    with Display() as display:
        job = build(RunSpec.of(config), display.say)
        note_operations(job, folder, display.say)
        return train(job, folder, display).status == "interrupted"


def wait_for_folder(folder: Path) -> None:
    """Wait until no other process works in a run's folder; training refuses a folder that stays locked."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with lock_folder(folder):
                return
        except TrainingError:
            time.sleep(POLL)


def load_plugins() -> None:
    """Run the plugin files that this process was given as arguments."""
    for plugin in sys.argv[1:]:
        runpy.run_path(plugin, run_name="attnlab_plugin")


def _fork(order: RunOrder, work: Work) -> int:
    server = os.getpid()
    # A stop may come before the child has its own handlers: the signal waits until then.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return child
    status = FAILED
    try:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        end_with_parent(server)
        status = _carry_out(order, work)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _carry_out(order: RunOrder, work: Work) -> int:
    """Do the work of an order with its output in a log; return the exit status."""
    try:
        folder = Path(order.folder)
        folder.mkdir(parents=True, exist_ok=True)
        log = open_file(folder / LOG, os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        return INTERRUPTED if work(folder, order.config) else 0
    except AttnlabError as error:
        print(f"{ERROR}{error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return FAILED


def _report(event: RunEvent) -> None:
    try:
        os.write(1, (json.dumps(asdict(event)) + "\n").encode())
    except BrokenPipeError:  # the study is gone
        return


if __name__ == "__main__":
    load_plugins()
    serve(train_run)
