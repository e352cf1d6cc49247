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
from attnlab.studies.run.dispatch import Dispatch
from attnlab.studies.run.execution import Execution
from attnlab.studies.run.server import FAILED, wait_for
from attnlab.training.record import locked
from attnlab.training.stopping import StopRequest

from .samples import quiet, study


class Line:
    """Stands in for the server: answers every order with the next status, and remembers what it was told."""

    statuses: list[int]
    orders: list[dict[str, Any]]
    ends: list[bool]

    def __init__(self, plugins: Any = ()) -> None:
        self.waiting: list[dict[str, Any]] = []

    def send(self, order: dict[str, Any]) -> None:
        self.orders.append(order)
        if "id" in order:
            self.waiting.append({"id": order["id"], "status": self.statuses.pop(0)})

    def hear(self) -> list[dict[str, Any]]:
        found, self.waiting = self.waiting, []
        return found

    def close(self, *, at_once: bool) -> None:
        self.ends.append(at_once)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> type[Line]:
    Line.statuses, Line.orders, Line.ends = [], [], []
    monkeypatch.setattr(execution, "Dispatch", Line)
    return Line


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Execution]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield Execution(tmp_path, ledger, study(seeds=[1]).plan(), quiet, StopRequest())
    ledger.close()


def test_a_server_that_dies_is_one_sentence() -> None:
    server = Dispatch()
    server.process.kill()
    server.process.wait()
    with pytest.raises(StudyError, match="has died; the same command goes on"):
        server.hear()
    with pytest.raises(StudyError, match="has died"):
        server.send({"stop": True})
    server.close(at_once=True)


def test_a_folder_that_is_still_held_is_waited_for(tmp_path: Path) -> None:
    held, done = threading.Event(), []

    def hold() -> None:
        with locked(tmp_path):
            held.set()
            time.sleep(0.3)
            done.append(True)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    wait_for(tmp_path)
    assert done
    holder.join()


def test_a_folder_that_stays_held_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.run.server.PATIENCE", 0.1)
    with locked(tmp_path):
        wait_for(tmp_path)


def test_a_worker_that_keeps_failing_is_given_up(line: type[Line], work: Execution) -> None:
    line.statuses = [FAILED, -9, FAILED, FAILED, FAILED, FAILED]
    work.go()
    assert len(work.given_up) == 3
    reasons = [reason for _, reason in work.ledger.failures()]
    assert reasons[:2] == [
        "its process ended with status 3", "its process was ended by signal 9; was there memory enough?",
    ]  # fmt: skip
    assert line.ends == [False]


def test_a_worker_that_was_asked_to_stop_has_not_failed(
    line: type[Line], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.statuses = [-signal.SIGTERM]
    hear = Line.hear

    def stop(own: Line) -> list[dict[str, Any]]:
        work.stop.signal = signal.SIGINT
        return hear(own)

    monkeypatch.setattr(line, "hear", stop)
    work.go()
    assert work.ledger.failures() == []
    assert work.given_up == {}
    assert len([order for order in line.orders if "id" in order]) == 1


def test_runs_that_are_going_are_asked_to_stop(
    line: type[Line], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.statuses = [4, 4, 4]
    send = Line.send

    def stop(own: Line, order: dict[str, Any]) -> None:
        send(own, order)
        work.stop.signal = signal.SIGINT

    monkeypatch.setattr(line, "send", stop)
    work.go()
    assert line.orders[-1] == {"stop": True}
    assert work.running == {}


def test_a_second_request_ends_everything_at_once(
    line: type[Line], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.statuses = [0]

    def interrupt(own: Line) -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    monkeypatch.setattr(line, "hear", interrupt)
    with pytest.raises(KeyboardInterrupt):
        work.go()
    assert line.ends == [True]


def test_nothing_is_started_after_a_request_to_stop(line: type[Line], work: Execution) -> None:
    work.stop.signal = signal.SIGINT
    work.go()
    assert line.orders == []
