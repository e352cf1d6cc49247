"""The conclusion of a study as it is printed: verdicts, shared notes once, faults, failed runs, and what to do next."""

from pathlib import Path

import pytest

from attnlab.cli.conclusion import print_conclusion
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.study import Conclusion

from ..studies.folders import BETTER, DOT, write_folder


def conclude(folder: Path) -> Conclusion:
    with open_record(folder) as record:
        return Conclusion.of(record)


def test_a_finished_study_has_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_conclusion(conclude(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER})), "study")
    shown = capsys.readouterr().out
    assert "BETTER BY AT LEAST 0.02" in shown
    assert "95 %" in shown
    assert "10 of 10 runs have ended; the ledger is study/ledger.sqlite" in shown
    assert "the same command" not in shown


def test_an_unfinished_study_can_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_conclusion(conclude(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER[:2]})), "study")
    shown = capsys.readouterr().out
    assert "BETTER" not in shown
    assert "the same command resumes the study" in shown


def test_a_smoke_test_ends_with_what_answers_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    print_conclusion(Conclusion([], 10, 10, {}, smoke_test="this is only a smoke test"), "study")
    assert capsys.readouterr().out.endswith("this is only a smoke test\n")


def test_failed_runs_are_listed_with_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    print_conclusion(Conclusion([], 9, 10, {"recall, tiny, dot, seed 1": "out of memory"}), "study")
    assert "failed: recall, tiny, dot, seed 1: out of memory" in capsys.readouterr().out
