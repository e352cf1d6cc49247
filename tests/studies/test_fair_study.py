"""A trained study whose arms are made equal, with the baseline against itself, and the best checkpoint of each run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from attnlab.studies.answers.study_folder import LEDGER, open_record
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.run.matching_record import MATCHING
from attnlab.studies.study import Study

from .samples import content, quiet


@pytest.fixture
def plain() -> dict[str, object]:
    """Return a study with everything that makes arms comparable, as small as it can be."""
    made = content(
        seeds=[1], phases__recall__figure_at="best", phases__recall__evaluate_every=1, phases__recall__target=0.9
    )
    made["data"]["recall"]["num_tune"] = 16
    arms = {"dot": "dot | softmax", "additive": "additive | softmax"}
    return {**made, "arms": arms, "match": "parameters", "aa": True}


def test_a_matched_study_runs_and_resumes_with_the_same_runs(
    plain: dict[str, object], here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "_audit_arms", lambda *_: {})  # which take longer than all else here
    study = Study.of(plain)
    conclusion = study.run(tmp_path, say=quiet)
    assert (conclusion.num_ended, conclusion.failed) == (3, {})
    assert {target.num_reached for target in conclusion.targets} == {0}
    with closing(Ledger(tmp_path / LEDGER, is_new=False)) as ledger:
        ids = [row.id for row in ledger.runs()]
        for row in ledger.runs():
            result = ledger.results()[row.id].result
            tuned = [line for line in ledger.lines(row.id, "tuning") if line["step"] <= 4]
            best = max(tuned, key=lambda line: (line["accuracy"], -line["step"]))
            # The figure is that of the dev data, at the step that is best on the tuning data.
            (dev,) = [line for line in ledger.lines(row.id, "evaluation") if line["step"] == best["step"]]
            assert result["last"]["step"] == best["step"]
            assert result["last"]["figures"]["accuracy"] == dev["accuracy"]
            assert len(ledger.examples(row.id)[0]) == 20
    assert study.run(tmp_path, say=quiet).num_ended == 3
    with open_record(tmp_path) as record:
        assert [run.id for run in record.runs] == ids
        assert len(record.ledger.events(MATCHING)) == 1
        counts = {run.arm: record.results[run.id].result["parameters"]["total"] for run in record.runs}
        assert counts["additive"] == pytest.approx(counts["dot"], rel=0.005)
        assert counts["aa"] == counts["dot"]
        assert not record.table("recall", "tiny").explain_unpaired("dot", "additive", [1], has_own_shapes=True)
