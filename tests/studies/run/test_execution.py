"""What goes wrong around runs: a server that dies, a folder still held, Ctrl-C twice, a worker that was stopped."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.run import execution
from attnlab.studies.run.execution import Execution
from attnlab.studies.run.server import FAILED, describe_end, wait_for_folder
from attnlab.studies.run.workers import LocalWorkers, RunEvent, RunOrder
from attnlab.training.loop.stopping import StopRequest
from attnlab.training.record.lock import lock_folder

from ..samples import quiet, study


class FakeWorkers:
    """Stands in for workers: each run ends with the next exit status, and what was asked is remembered."""

    statuses: list[int]
    orders: list[RunOrder | str]
    ends: list[bool]

    def __init__(self, plugins: Any = ()) -> None:
        self.events: list[RunEvent] = []

    def send(self, order: RunOrder) -> None:
        self.orders.append(order)
        self.events.append(describe_end(order, self.statuses.pop(0)))

    def stop(self) -> None:
        self.orders.append("stop")

    def receive(self) -> list[RunEvent]:
        events, self.events = self.events, []
        return events

    def close(self, *, at_once: bool) -> None:
        self.ends.append(at_once)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorkers]:
    FakeWorkers.statuses, FakeWorkers.orders, FakeWorkers.ends = [], [], []
    monkeypatch.setattr(execution, "LocalWorkers", FakeWorkers)
    return FakeWorkers


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Execution]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield Execution(tmp_path, ledger, study(seeds=[1]).plan(), quiet, StopRequest())
    ledger.close()


def test_a_server_that_dies_is_one_sentence() -> None:
    workers = LocalWorkers()
    workers.process.kill()
    workers.process.wait()
    with pytest.raises(StudyError, match="has died; the same command goes on"):
        workers.receive()
    with pytest.raises(StudyError, match="has died"):
        workers.stop()
    workers.close(at_once=True)


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


def test_a_worker_that_keeps_failing_is_given_up(fake: type[FakeWorkers], work: Execution) -> None:
    fake.statuses = [FAILED, -9, FAILED, FAILED, FAILED, FAILED]
    work.go()
    assert len(work.given_up) == 3
    reasons = [reason for _, reason in work.ledger.failures()]
    assert reasons[:2] == [
        "its process ended with status 3", "its process was ended by signal 9; was there memory enough?",
    ]  # fmt: skip
    assert fake.ends == [False]


def test_a_worker_that_was_asked_to_stop_has_not_failed(
    fake: type[FakeWorkers], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.statuses = [-signal.SIGTERM]
    receive = FakeWorkers.receive

    def stop(own: FakeWorkers) -> list[RunEvent]:
        work.stop.signal = signal.SIGINT
        return receive(own)

    monkeypatch.setattr(fake, "receive", stop)
    work.go()
    assert work.ledger.failures() == []
    assert work.given_up == {}
    assert len(fake.orders) == 1


def test_runs_that_are_going_are_asked_to_stop(
    fake: type[FakeWorkers], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.statuses = [4, 4, 4]
    send = FakeWorkers.send

    def stop(own: FakeWorkers, order: RunOrder) -> None:
        send(own, order)
        work.stop.signal = signal.SIGINT

    monkeypatch.setattr(fake, "send", stop)
    work.go()
    assert fake.orders[-1] == "stop"
    assert work.running == {}


def test_a_second_request_ends_everything_at_once(
    fake: type[FakeWorkers], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.statuses = [0]

    def interrupt(own: FakeWorkers) -> list[RunEvent]:
        raise KeyboardInterrupt

    monkeypatch.setattr(fake, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        work.go()
    assert fake.ends == [True]


def test_nothing_is_started_after_a_request_to_stop(fake: type[FakeWorkers], work: Execution) -> None:
    work.stop.signal = signal.SIGINT
    work.go()
    assert fake.orders == []
