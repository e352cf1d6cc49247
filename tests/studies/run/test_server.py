"""The server of workers: it waits for a folder that is locked, and describes how workers end."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from attnlab.studies.run.server import FAILED, INTERRUPTED, LOG, describe_end, wait_for_folder
from attnlab.studies.run.workers import RunEvent, RunOrder
from attnlab.training.record.lock import lock_folder


def test_a_folder_that_is_still_held_is_waited_for(tmp_path: Path) -> None:
    held, done = threading.Event(), []

    def hold() -> None:
        with lock_folder(tmp_path):
            held.set()
            time.sleep(0.3)
            done.append(True)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    wait_for_folder(tmp_path)
    assert done
    holder.join()


def test_a_folder_that_stays_held_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.run.server.PATIENCE", 0.1)
    with lock_folder(tmp_path):
        wait_for_folder(tmp_path)


@pytest.mark.parametrize(
    ("status", "kind", "detail"),
    [
        (0, "finished", ""), (INTERRUPTED, "interrupted", ""), (-15, "interrupted", ""),
        (-9, "failed", "its process was ended by signal 9; it may have run out of memory"),
        (-11, "failed", "its process was ended by signal 11"), (FAILED, "failed", "the disk is full"),
    ],
)  # fmt: skip
def test_the_end_of_a_worker_is_an_event(status: int, kind: str, detail: str, tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("step 1\nattnlab: the disk is full\n", encoding="utf-8")
    assert describe_end(RunOrder("1", str(tmp_path), {}), status) == RunEvent("1", kind, detail)  # type: ignore[arg-type]


def test_a_worker_that_left_no_log_is_described_by_its_status(tmp_path: Path) -> None:
    event = describe_end(RunOrder("1", str(tmp_path / "none"), {}), FAILED)
    assert (event.kind, event.detail) == ("failed", f"its process ended with status {FAILED}")


def test_a_stop_right_after_an_order_ends_the_worker(tmp_path: Path) -> None:
    """The signal may come before the forked process has its own handlers."""
    program = "import time; from attnlab.studies.run.server import serve; serve(lambda *_: bool(time.sleep(5)))"
    orders = [json.dumps({"id": str(n), "folder": str(tmp_path / str(n)), "config": {}}) for n in range(6)]
    told = "\n".join([*orders, json.dumps({"stop": True}), ""])
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        # At its end, standard input is another stop.
        server.stdin.write(told.encode())
        server.stdin.flush()
        lines = [server.stdout.readline() for _ in range(2 * len(orders))]
    events = [RunEvent(**json.loads(line)) for line in lines]
    assert [event.kind for event in events if event.kind != "started"] == ["interrupted"] * len(orders)
