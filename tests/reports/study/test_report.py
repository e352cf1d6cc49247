"""Reports of unfinished and failed studies, and folders without a study."""

from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.reports import write_report

from .made import Made
from .reading import rows


def test_every_run_is_in_a_table(folder: Path) -> None:
    found = rows(folder / "tables" / "per_seed.csv")
    assert len(found) == 20
    lost = next(row for row in found if row["arm"] == "worse" and row["seed"] == "3")
    assert (lost["status"], lost["accuracy"]) == ("diverged", "")
    assert found[0] == {
        "phase": "recall", "size": "tiny", "arm": "dot", "seed": "1", "run": found[0]["run"], "status": "finished",
        "step": "4", "accuracy": "0.5", "seconds": "2.0", "operations": "", "tokens": "1000",
        "parameters": "120", "trained": "100",
    }  # fmt: skip


def test_a_study_without_any_result_is_reported_too(tmp_path: Path) -> None:
    made = Made(tmp_path)
    for run in made.planned:
        made.ledger.fail(made.ledger.begin(run.id, "here"), "no room left")
        made.ledger.give_up(run.id, "no room left")
    page = write_report(made.done()).read_text(encoding="utf-8")
    assert "0 of 10 runs have ended, 10 failed" in page
    assert "no room left" in page
    assert "NOT COMPARABLE" in page
    assert not list((tmp_path / "figures").glob("*"))


def test_a_folder_that_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="holds no study"):
        write_report(tmp_path)
    with pytest.raises(StudyError, match="is no folder"):
        write_report(tmp_path / "nowhere")
