"""Targets of a study: which arms reach them, when, and runs that never do; the same in terminal, report and JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.reports.study.report import write_report
from attnlab.studies.answers.study_folder import LEDGER, PLAN, open_record
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.plan.matching import Matching, RunCount
from attnlab.studies.run.execution import make_row
from attnlab.studies.run.matching_record import record_matching
from attnlab.studies.study import Study

from ..folders import PAIRING, two_arms

CURVES = {"dot": (0.2, 0.4, 0.5), "better": (0.3, 0.55, 0.7)}
STEPS = (1, 2, 4)
MATCHING = Matching("steps", {("recall", "tiny", arm): RunCount((4,), (10.0,), 1, 1) for arm in CURVES}, "", "basis")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a study with a target of 0.6, whose runs have learning curves; one run of `better` diverged."""
    plain = two_arms(seeds=[1, 2, 3, 4, 5, 6])
    plain["phases"][0]["target"] = 0.6
    study = Study.of(plain)
    planned = study._make_planner((), MATCHING).list_runs(None)
    path = tmp_path / "study"
    path.mkdir()
    ledger = Ledger(path / LEDGER)
    ledger.note_fact("study", study.design.name)
    record_matching(ledger, MATCHING)
    ledger.add_event("design", json.dumps(study.design.model_dump(mode="json")))
    ledger.add_event("started", "{}")
    ledger.add_event(PLAN, json.dumps({"runs": [run.id for run in planned], "obstacles": {}, "data": {}, "audits": {}}))
    ledger.add_runs([make_row(run) for run in planned])
    for run in planned:
        has_diverged = (run.arm, run.seed) == ("better", 6)
        values = [value + 0.01 * (run.seed % 3) for value in CURVES[run.arm]]
        lines = [{"kind": "evaluation", "step": at, "accuracy": one} for at, one in zip(STEPS, values, strict=True)]
        lines += [{"kind": "train", "step": at, "loss": 1.0, "seconds": 0.5 * at} for at in STEPS]
        last = {"step": 4, "primary": "accuracy", "figures": {"accuracy": values[-1]}, "note": ""}
        status = "diverged" if has_diverged else "finished"
        result = {"status": status, "step": 4, "num_steps": 4, "last": None if has_diverged else last, "seconds": 2.0}
        metrics = [] if has_diverged else lines
        ledger.deliver(Delivery(run.id, ledger.begin(run.id, "here"), status, result, metrics, PAIRING, [], {}))
    ledger.close()
    return path


def test_an_arm_reaches_a_target_that_the_baseline_does_not(folder: Path) -> None:
    with open_record(folder) as record:
        dot, better = record.targets
    assert (dot.arm, dot.verdict, dot.num_reached, dot.num_runs) == ("dot", "DOES NOT REACH 0.6", 0, 6)
    assert (dot.steps, dot.operations, dot.seconds, dot.exchange) == (None, None, None, None)
    assert (better.verdict, better.num_reached) == ("REACHES 0.6 AMONG RUNS THAT FINISHED", 5)
    assert better.p < 0.01
    assert better.steps is not None
    assert 2 < better.steps < 4
    assert better.operations == pytest.approx(10 * better.steps)
    assert better.seconds == pytest.approx(0.5 * better.steps)
    assert better.exchange is not None
    change, (low, high) = better.exchange
    assert -60 < low <= change <= high < -40


def test_terminal_report_and_json_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert main(["compare", str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    page = write_report(folder).read_text(encoding="utf-8")
    table = list(csv.DictReader((folder / "tables" / "targets.csv").read_text(encoding="utf-8").splitlines()))
    for target, row in zip(record["targets"], table, strict=True):
        assert (row["arm"], row["verdict"]) == (target["arm"], target["verdict"])
        assert target["verdict"] in shown
        assert target["verdict"] in page
    assert 'id="reaches"' in page
