"""The names of trackers: what is refused before training, and how one's own is registered."""

import sys
from typing import Any

import pytest

import attnlab.training.tracking.trackers  # noqa: F401  (registers the trackers of attnlab)
from attnlab.errors import TrainingError
from attnlab.training import Tracker, tracker
from attnlab.training.tracking.tracker import TRACKERS, make_trackers
from tests.training.tracking.fakes import provide, registered


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["tensorbord"],
            "no tracker 'tensorbord', did you mean 'tensorboard'.*tensorboard, trackio, wandb",
        ),
        (["wandb"], "the tracker 'wandb' needs a package that is missing: pip install wandb"),
        (["tensorboard:online"], "'tensorboard:online': this tracker sends nothing, so it has no ':online'"),
        (["trackio:here"], "only ':online' can follow, as in 'trackio:online'"),
        (["trackio", "trackio"], "'trackio' is named twice"),
        (["trackio:online"], "set TRACKIO_SPACE_ID or TRACKIO_SERVER_URL"),
    ],
)
def test_what_cannot_be_tracked_is_refused(names: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setattr("attnlab.training.tracking.tracker.find_spec", lambda name: None if name == "wandb" else name)
    for name in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TrainingError, match=said):
        make_trackers(names)


def test_nothing_is_sent_because_of_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    provide(monkeypatch, "trackio")
    monkeypatch.setenv("TRACKIO_SPACE_ID", "somebody/space")
    with pytest.raises(TrainingError, match="TRACKIO_SPACE_ID is set, so figures would be sent; unset it, or ask"):
        make_trackers(["trackio"])
    assert make_trackers(["trackio:online"])["trackio"][1]


def test_a_class_becomes_a_tracker_by_its_decorator() -> None:
    @tracker("mine")
    class Mine(Tracker):
        pass

    assert isinstance(make_trackers(["mine"])["mine"][0], Mine)
    del TRACKERS["mine"]
    wrong: Any = tracker("mine")
    with pytest.raises(TrainingError, match=r"'mine' must be a class derived from attnlab\.training\.Tracker"):
        wrong(print)
    with pytest.raises(TrainingError, match="a word without ':', not 'a:b'"):
        tracker("a:b")(Mine)


def test_a_tracker_of_ones_own_is_made_by_name() -> None:
    with registered("memory"):
        assert list(make_trackers(["memory"])) == ["memory"]
