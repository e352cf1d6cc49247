"""A tracked run is the same run; its trackers get each figure once, and a tracker that fails loses no run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from attnlab.training import build, train
from attnlab.training.tracking.trackers import check_trackers, read_failures
from tests.training.runs import Listening, Stopping, assert_same_run, lines_of, small, trained
from tests.training.tracking.fakes import Remembering, registered

WATCHING: dict[str, Any] = {"log_every": 2, "evaluate_every": 3, "checkpoint_every": 2}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    trained(small(**WATCHING), folder)
    return folder


def test_a_resumed_run_is_the_same_and_logs_each_figure_once(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small(**WATCHING, trackers=("memory",), project="demo", title="relu, seed 3")
    with registered() as calls:
        train(build(run), tmp_path, Stopping({4}))
        train(build(run), tmp_path, Stopping(()))
    assert capsys.readouterr().out == ""
    assert_same_run(tmp_path, whole)
    starts = [call[1] for call in calls if call[0] == "start"]
    assert [(run.project, run.name, run.step, run.is_online) for run in starts] == [
        ("demo", "relu, seed 3", 0, False), ("demo", "relu, seed 3", 4, False),
    ]  # fmt: skip
    assert starts[0].id == starts[1].id
    assert starts[0].config["start"]["mechanism"] == "dot | softmax"
    assert starts[0].folder == tmp_path / "trackers" / "memory"
    assert [call[0] for call in calls].count("finish") == 2
    logged = [(call[1], name) for call in calls if call[0] == "log" for name in call[2]]
    assert len(set(logged)) == len(logged)
    assert {step for step, name in logged if name == "train/loss"} == {2, 4, 6}
    assert {step for step, name in logged if name == "dev/perplexity"} == {3, 5, 6}
    assert (6, "train/tokens_per_second") in logged


class Breaking(Remembering):
    """Fails at some point."""

    place = "start"

    def start(self, run: Any) -> None:
        super().start(run)
        if self.place == "start":
            raise ConnectionError("no route")

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        super().log(step, figures)
        if self.place == "log":
            raise ValueError("disk full")

    def finish(self) -> None:
        super().finish()
        if self.place == "finish":
            raise RuntimeError("too late")


@pytest.mark.parametrize(("place", "num_calls"), [("start", 1), ("log", 2), ("finish", 8)])
def test_a_tracker_that_fails_is_named_once_and_the_run_finishes(
    place: str, num_calls: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Breaking, "place", place)
    display = Listening()
    with registered("broken", Breaking) as calls:
        result = train(build(small(**WATCHING, trackers=("broken",))), tmp_path, display)
    assert result.status == "finished"
    assert lines_of(tmp_path) == lines_of(whole)
    assert len(calls) == num_calls
    said = [line for line in display.said if "tracker" in line]
    assert len(said) == 1
    assert "the tracker 'broken' failed (" in said[0]
    assert "the run goes on" in said[0]
    assert read_failures(tmp_path) == {"broken": said[0]}


def test_known_trackers_are_accepted() -> None:
    with registered():
        check_trackers(["memory"])
