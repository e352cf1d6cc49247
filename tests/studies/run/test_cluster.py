"""The workers of a cluster, without one: what is sent, and connections that fail."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab.errors import StudyError
from attnlab.studies.run import cluster, node
from attnlab.studies.run.cluster import (
    check_answer,
    check_room,
    connect_workers,
    find_address,
    find_reason,
    load_ray,
    resolve_data,
)


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


def test_a_place_that_is_none_is_answered() -> None:
    with (
        pytest.raises(StudyError, match="on local or ray, not on 'rya', did you mean 'ray'"),
        connect_workers("rya", 1),
    ):
        pass


def test_missing_ray_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(StudyError, match=r"pip install 'attnlab\[ray\]'"), connect_workers("ray", 1):
        pass


def test_old_ray_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(__version__="2.9.3"))
    with pytest.raises(StudyError, match=r"Ray is 2\.9\.3, and 2\.54 is needed"):
        load_ray()


@pytest.mark.parametrize("address", ["local", "nonsense", "ray://head:10001", "head:", ":6379"])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(StudyError, match="HOST:PORT of a cluster's head is needed"):
        find_address()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        pytest.param("import time; time.sleep(60)", "at RAY_ADDRESS=head:1 within 0 seconds", id="silent"),
        pytest.param("raise ConnectionError('no such cluster')", "(no such cluster)", id="refused"),
        pytest.param("raise SystemExit(7)", "(status 7)", id="wordless"),
    ],
)
def test_a_connection_that_comes_to_nothing_is_one_sentence(
    program: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT", program)
    if "sleep" in program:
        monkeypatch.setattr(cluster, "PATIENCE", 0.1)
    with pytest.raises(StudyError) as raised:
        check_answer("head:1")
    assert words in str(raised.value)


def test_runs_that_fit_on_no_node_are_refused() -> None:
    nodes = [{"Alive": True, "Resources": {"CPU": 4.0}}, {"Alive": False, "Resources": {"CPU": 16.0}}]
    check_room(SimpleNamespace(nodes=lambda: nodes), 4)
    with pytest.raises(StudyError, match="the largest of the cluster has 4; take fewer threads"):
        check_room(SimpleNamespace(nodes=lambda: nodes), 8)
