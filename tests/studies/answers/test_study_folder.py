"""The record of a study, read from its folder at any time."""

import json
from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.studies.answers.study_folder import LEDGER, open_record
from attnlab.studies.ledger.database import Ledger

from ..folders import BETTER, DOT, write_folder


def test_a_study_is_read_as_it_was_planned(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})
    with open_record(folder) as record:
        assert (record.design.name, set(record.design.arms)) == ("small", {"dot", "better"})
        assert (len(record.runs), record.num_ended, record.is_whole) == (10, 10, True)
        assert [answer.verdict for answer in record.answers] == ["BETTER BY AT LEAST 0.02 AT SHARED SETTINGS"]
        assert record.table("recall", "tiny").values("dot", "accuracy") == dict(enumerate(DOT, start=1))
        assert record.folder_of(record.runs[0]) == folder / "runs" / record.runs[0].id
        assert record.audits == {"dot": ("dot | softmax",), "better": ("cosine | softmax",)}


def test_there_are_no_answers_before_every_run_has_ended_or_was_given_up(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER[:4]})
    with open_record(folder) as record:
        assert (record.num_ended, record.is_whole, record.answers) == (9, False, [])
        (left,) = [run for run in record.runs if run.id not in record.results]
    ledger = Ledger(folder / LEDGER)
    ledger.give_up(left.id, "out of memory")
    ledger.close()
    with open_record(folder) as record:
        assert (record.is_whole, record.failed) == (True, {left.title: "out of memory"})
        assert len(record.answers) == 1


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="is no folder"), open_record(tmp_path / "nothing"):
        pass
    with pytest.raises(StudyError, match="holds no study"), open_record(tmp_path):
        pass


def test_a_study_that_was_never_planned_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / LEDGER)
    ledger.add_event("design", json.dumps({}))
    ledger.close()
    with pytest.raises(StudyError, match="never planned to its end"), open_record(tmp_path):
        pass


def test_a_design_of_another_version_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT})
    ledger = Ledger(folder / LEDGER)
    ledger.add_event("design", json.dumps({"name": "old", "stages": []}))
    ledger.close()
    with pytest.raises(StudyError, match=r"cannot be read by this attnlab: .+") as caught, open_record(folder):
        pass
    assert "\n" not in str(caught.value)
