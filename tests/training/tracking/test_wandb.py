"""What W&B is given: an offline run, unless online was asked for."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from attnlab.training.tracking.wandb import WeightsAndBiases
from tests.training.tracking.fakes import RUN, Client, provide


@pytest.mark.parametrize("is_online", [False, True])
def test_a_run_is_offline_unless_online_was_asked_for(
    is_online: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    provide(monkeypatch, "wandb", init=Client, Settings=lambda **settings: settings)
    board: Any = WeightsAndBiases()
    board.check(is_online)
    board.start(dataclasses.replace(RUN, folder=tmp_path / "wandb", is_online=is_online))
    board.log(3, {"train/loss": 0.5})
    board.finish()
    given = board.run.given
    assert given["mode"] == ("online" if is_online else "offline")
    assert given.get("resume") == ("allow" if is_online else None)
    assert (given["id"], given["project"], given["name"]) == (RUN.id, RUN.project, RUN.name)
    assert given["reinit"] == "create_new"
    assert given["settings"]["console"] == "off"
    assert Path(given["dir"]).is_dir()
    assert board.run.logged == [(3, {"train/loss": 0.5})]
    assert board.run.is_finished
