"""The execution of runs: failures, losses, Ctrl-C once and twice, and runs that are given up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.studies.ledger.database import Ledger
from attnlab.studies.run import execution
from attnlab.studies.run.execution import MAX_LOSSES, Execution
from attnlab.studies.run.server import FAILED, describe_end
from attnlab.studies.run.workers import RunEvent, RunOrder
from attnlab.training.loop.stopping import StopRequest
from attnlab.training.record.files import write_json

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


def test_a_worker_that_keeps_failing_is_given_up(fake: type[FakeWorkers], work: Execution) -> None:
    fake.statuses = [FAILED, -9, FAILED, FAILED, FAILED, FAILED]
    work.run()
    assert len(work.given_up) == 3
    reasons = [reason for _, reason in work.ledger.failures()]
    assert reasons[:2] == [
        "its process ended with status 3", "its process was ended by signal 9; it may have run out of memory",
    ]  # fmt: skip
    assert fake.ends == [False]


def test_a_tracker_that_failed_is_reported_once(work: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = SimpleNamespace(status="finished", result={"last": None})
    monkeypatch.setattr(execution, "_read_delivery", lambda *given: delivery)
    monkeypatch.setattr(work.ledger, "deliver", lambda delivery: None)
    said: list[str] = []
    work.say = said.append
    for run in work.planned[:2]:
        write_json(
            work.folder / "runs" / run.id / "trackers" / "failures.json", {"wandb": "the tracker 'wandb' failed"}
        )
        work._record_result(run, 1)
    assert [message for message in said if "tracker" in message] == [
        f"{work.planned[0].title}: the tracker 'wandb' failed (later failures of 'wandb' are only in the runs' log.txt)"
    ]


def test_a_worker_that_was_asked_to_stop_has_not_failed(
    fake: type[FakeWorkers], work: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.statuses = [-signal.SIGTERM]
    receive = FakeWorkers.receive

    def stop(own: FakeWorkers) -> list[RunEvent]:
        work.stop.signal = signal.SIGINT
        return receive(own)

    monkeypatch.setattr(fake, "receive", stop)
    work.run()
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
    work.run()
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
        work.run()
    assert fake.ends == [True]


def test_nothing_is_started_after_a_request_to_stop(fake: type[FakeWorkers], work: Execution) -> None:
    work.stop.signal = signal.SIGINT
    work.run()
    assert fake.orders == []


class Losing:
    """Stands in for a cluster that loses every run."""

    def __init__(self, plugins: Any = ()) -> None:
        self.events: list[RunEvent] = []

    def send(self, order: RunOrder) -> None:
        self.events += [RunEvent(order.id, "started", "far"), RunEvent(order.id, "lost", "NodeDiedError")]

    def receive(self) -> list[RunEvent]:
        events, self.events = self.events, []
        return events

    def close(self, *, at_once: bool) -> None:
        assert not at_once


def test_a_lost_node_is_no_failure_until_it_happens_too_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.run.execution.RayWorkers", Losing)
    said: list[str] = []
    ledger = Ledger(tmp_path / "ledger.sqlite")
    run = study(seeds=[1]).plan()[0]
    work = Execution(tmp_path, ledger, [run], said.append, StopRequest(), None, on="ray")
    work.run()
    assert said[0] == f"{run.title}: on node far"
    assert said[1] == f"{run.title}: its node was lost (NodeDiedError); it starts again"
    assert sum("starts again" in line for line in said) == MAX_LOSSES - 1
    assert [reason for _, reason in ledger.failures()] == [
        f"its node was lost {number} times (NodeDiedError)" for number in (MAX_LOSSES, MAX_LOSSES + 1)
    ]  # fmt: skip
    assert list(work.given_up) == [run.id]
    ledger.close()
