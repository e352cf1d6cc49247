"""A run as data: written, read again, and told from anything else; the folder of one, told from other paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training import Optimizer, Run, Settings, Stage, Start, Watching
from attnlab.training.run import folder_of_run


def test_a_run_is_read_as_it_was_written() -> None:
    stages = (Stage("a", steps=2, lr=0.1), Stage("b", epochs=1.5, length=9))
    run = Run("clm", Start("gpt2", config={"n_layer": 2}), settings=Settings(stages, 3, Optimizer(eps=1e-6)))
    assert Run.of(run.config) == run


@pytest.mark.parametrize(
    "config",
    [{}, {"model_type": "bert"}, {"settings": 3}, {"settings": {"stages": []}}],
    ids=["nothing", "a model", "a number", "half"],
)
def test_the_config_of_something_else_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=r"not that of a run .* is it a model's\?"):
        Run.of(config)


def test_what_decides_no_result_is_not_in_the_config() -> None:
    run = Run("clm", Start("gpt2"))
    other = Run("clm", Start("gpt2"), watching=Watching(log_every=3), threads=2)
    assert run.config == other.config


def test_the_folder_of_a_run_is_known_by_its_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    run = tmp_path / "run"
    assert folder_of_run(str(run)) == (run, False)
    assert folder_of_run(f"{run}:last") == (run, False)
    assert folder_of_run(f"{run}:best") == (run, True)
    assert folder_of_run(f"{run}:worst") is None
    assert folder_of_run(str(tmp_path)) is None
