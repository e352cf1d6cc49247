"""The two ends of a run on a cluster, without one: what is sent, what is refused on a node, and what a loss costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.run import node
from attnlab.studies.run.cluster import find_files, find_reason, resolve_data
from attnlab.studies.run.execution import MOST_LOSSES, Execution
from attnlab.studies.run.workers import RunEvent, RunOrder
from attnlab.training.loop.stopping import StopRequest

from ..samples import study


def test_data_is_sent_by_whole_paths_with_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("one\ntwo\n", encoding="utf-8")
    config, sources = resolve_data({"data": {"train": "text.txt", "dev": None}})
    assert config == {"data": {"train": str(tmp_path / "text.txt"), "dev": None}}
    node.check_sources(sources, "far")
    name, split, digest = sources[0]
    with pytest.raises(StudyError, match=r"on node far, .*text.txt has another content"):
        node.check_sources([(name, split, digest[::-1])], "far")
    with pytest.raises(StudyError, match=r"on node far: .*gone.txt.* same path on every node"):
        node.check_sources([(str(tmp_path / "gone.txt"), None, digest)], "far")


def test_files_a_model_starts_from_are_sent_and_names_of_the_hub_are_not(tmp_path: Path) -> None:
    assert find_files(f"{tmp_path}:best") == (tmp_path, ":best")
    assert find_files("gpt2") is None
    assert find_files(None) is None


def test_a_folder_that_was_sent_says_where_things_are_there(tmp_path: Path) -> None:
    config = study().plan()[0].run.config
    file = tmp_path / node.RUN / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(config), encoding="utf-8")
    errand = {"id": "1", "config": config, "shipped": [("start", "checkpoint", ":best")]}
    order = node.prepare_order(errand, tmp_path)
    assert order.config["start"]["checkpoint"] == f"{tmp_path}/checkpoint:best"
    assert order.folder == str(tmp_path / node.RUN)
    assert json.loads(file.read_text(encoding="utf-8")) == order.config


def test_another_version_is_named() -> None:
    assert node.compare_versions(node.get_versions(), node.get_versions()) == ""
    assert node.compare_versions({"torch": "2.13.0"}, {"torch": "2.12.0"}) == "torch 2.12.0 where the study has 2.13.0"


def test_a_process_that_is_not_the_runs_any_more_is_left_alone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
    node.stop_process(child.pid, os.getpgid(0))
    assert child.poll() is None
    node.stop_process(child.pid, child.pid)
    assert child.wait() == -15
    node.stop_process(child.pid, child.pid)
    assert child.stdin is not None
    child.stdin.close()


def test_folders_of_killed_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(node, "ABANDONED", -1.0)
    left = tmp_path / f"{node.PREFIX}left"
    left.mkdir()
    (left / "lock").touch()
    with node.make_scratch() as held:
        node.remove_abandoned()
        assert held.exists()
    assert list(tmp_path.iterdir()) == []


class TaskError(Exception):
    """Stands in for what Ray raises of a task that failed."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"Traceback:\n{type(cause).__name__}: {cause}")
        self.cause = cause


def test_why_a_task_failed_is_said_in_one_line() -> None:
    assert find_reason(TaskError(StudyError("the disk is full"))) == "the disk is full"
    assert find_reason(TaskError(ValueError("seven"))) == "ValueError: seven"
    with pytest.raises(StudyError, match="a node has no attnlab"):
        find_reason(TaskError(ModuleNotFoundError("No module named 'attnlab'")))


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
    work.go()
    assert said[0] == f"{run.title}: on node far"
    assert said[1] == f"{run.title}: its node was lost (NodeDiedError); it starts again"
    assert sum("starts again" in line for line in said) == MOST_LOSSES - 1
    assert [reason for _, reason in ledger.failures()] == [
        f"its node was lost {number} times (NodeDiedError)" for number in (MOST_LOSSES, MOST_LOSSES + 1)
    ]  # fmt: skip
    assert list(work.given_up) == [run.id]
    ledger.close()
