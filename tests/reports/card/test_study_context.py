"""The context of a run: its study's verdict on its arm, once every run has ended."""

from pathlib import Path

import pytest

from attnlab.reports.card.study_context import StudyContext, find_plugin_hashes, find_study_context

from ...studies.folders import BETTER, DOT, write_folder
from ...studies.moments import Moment


def context_of(folder: Path, arm: str) -> StudyContext:
    """Return the context of the first run of an arm."""
    from attnlab.studies.answers.study_folder import open_record

    with open_record(folder) as record:
        id = next(run.id for run in record.runs if run.arm == arm)
    context = find_study_context(folder / "runs" / id)
    assert context is not None
    return context


def test_a_folder_outside_of_a_study_has_no_context(tmp_path: Path) -> None:
    assert find_study_context(tmp_path / "runs" / "x") is None
    assert find_plugin_hashes(tmp_path / "runs" / "x") == []
    moment = Moment(tmp_path)
    moment.plan()
    moment.ledger.close()
    assert find_study_context(tmp_path / "runs" / "of another study") is None


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("context") / "out", {"dot": DOT, "better": BETTER})


def test_an_arm_has_its_verdict_with_difference_and_interval(ended: Path) -> None:
    context = context_of(ended, "better")
    assert context.title == "better of the study small"
    assert "; against `dot`, by accuracy: **BETTER" in context.sentence
    assert ", difference +" in context.sentence


def test_the_baseline_is_named_as_such(ended: Path) -> None:
    assert context_of(ended, "dot").sentence.endswith("This arm is the baseline that others are compared with.")


def test_a_study_that_has_not_ended_has_no_verdict(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", {"dot": DOT[:2]})
    assert "Not all of its runs have ended, so there is no verdict yet." in context_of(folder, "better").sentence
