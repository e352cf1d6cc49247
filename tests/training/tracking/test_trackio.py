"""What Trackio is given."""

from typing import Any

import pytest

from attnlab.training.tracking.trackio import Trackio
from tests.training.tracking.fakes import RUN, Client, provide


def test_a_run_is_continued_under_its_name_and_id(monkeypatch: pytest.MonkeyPatch) -> None:
    provide(monkeypatch, "trackio", init=Client)
    board: Any = Trackio()
    board.start(RUN)
    board.log(3, {"train/loss": 0.5})
    board.finish()
    given = board.run.given
    assert given["name"] == f"{RUN.name} {RUN.id}"
    assert (given["project"], given["resume"], given["config"]) == (RUN.project, "allow", {"seed": 1})
    assert "space_id" not in given
    assert board.run.logged == [(3, {"train/loss": 0.5})]
    assert board.run.is_finished
