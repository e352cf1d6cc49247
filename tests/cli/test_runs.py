"""The folder of a trained model: a run, a saved model, or the run of a study that options choose."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.cli.runs import find_run_folder
from attnlab.errors import RequestError
from attnlab.studies.run.execution import make_row
from tests.studies.moments import Moment


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    made = Moment(tmp_path)
    made.plan()
    made.ledger.add_runs([make_row(run) for run in made.planned])
    yield made
    made.ledger.close()


def test_a_folder_with_a_config_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert find_run_folder(str(tmp_path)) == tmp_path
    with pytest.raises(RequestError, match="choose a run of a study"):
        find_run_folder(str(tmp_path), arm="dot")


def test_options_choose_one_run_of_a_study(moment: Moment, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="none of its runs has begun"):
        find_run_folder(str(tmp_path))
    for arm in ("dot", "bypass"):
        (tmp_path / "runs" / moment.run(arm, 1).id).mkdir(parents=True)
    chosen = find_run_folder(str(tmp_path), arm="dot", seed=1)
    assert chosen == tmp_path / "runs" / moment.run("dot", 1).id
    with pytest.raises(RequestError, match="several of its runs match"):
        find_run_folder(str(tmp_path), seed=1)
    with pytest.raises(RequestError, match="none of its runs matches"):
        find_run_folder(str(tmp_path), arm="none")
