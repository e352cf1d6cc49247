"""A study examines itself: no alarm without a fault, every planted fault found, and only the ledger needed."""

import json
from pathlib import Path

import numpy as np
import pytest

from attnlab.cli import main
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.study import Study
from tests.studies.samples import content, quiet

from .recorded_study import SEEDS, RecordedStudy, faults, notes, sentence, text_study

LEAKING = "dot | softmax | mask(after)"


def test_a_sound_study_raises_no_alarm(study: RecordedStudy) -> None:
    assert study.findings() == ()


@pytest.mark.parametrize("number", range(8))
def test_ties_on_small_sets_raise_no_alarm(number: int, tmp_path: Path) -> None:
    study = RecordedStudy(tmp_path, seeds=list(range(1, 11)))
    draw = np.random.default_rng(number)
    for arm, seed in study.runs:
        study.give(arm, seed, [float(k) / 20 for k in draw.binomial(20, 0.5, size=2)])
    assert faults(study.findings()) == []


def test_values_that_another_seed_has_are_found(study: RecordedStudy) -> None:
    for seed in (1, 2):
        study.give("better", seed, loss=[1.987654321, 1.512345678])
    found = study.findings()
    assert faults(found) == ["repeated values"]
    assert "better seed 2 has 2 of better seed 1" in sentence(found, "repeated values")


def test_a_step_that_holds_nothing_new_is_found(study: RecordedStudy) -> None:
    for seed in SEEDS:
        study.give("better", seed, loss=[1.5 + seed / 7] * 2)
    assert faults(study.findings()) == ["repeated values"]


def test_a_spread_that_rests_on_one_seed_is_found(study: RecordedStudy) -> None:
    for seed in SEEDS:
        study.give("better", seed, [0.6 + seed / 200, 0.05 if seed == 4 else 0.7 + seed / 200])
    found = study.findings()
    assert faults(found) == ["outlying seed"]
    assert "better accuracy at step 20: seed 4 is" in sentence(found, "outlying seed")


@pytest.mark.parametrize(
    ("line", "is_fault"), [("cosine | softmax", True), ("dot | softmax", False)], ids=["another", "the same"]
)
def test_other_budgets_are_a_fault_unless_they_are_what_is_studied(line: str, is_fault: bool, tmp_path: Path) -> None:
    own = {"mechanism": line, "set": {"segments.0.steps": 8}}
    study = RecordedStudy(tmp_path, arms={"dot": "dot | softmax", "better": own})
    for seed in SEEDS:
        study.give("better", seed, steps=(10, 40), tokens=2000 + seed)
    found = study.findings()
    assert faults(found) == ["different budgets"] * is_fault
    assert notes(found) == ["different budgets"] * (not is_fault) + ["different settings"]
    assert "differ in last step: 'dot' 20, 'better' 40" in sentence(found, "different budgets").replace(
        "'better' 40, 'dot' 20", "'dot' 20, 'better' 40"
    )
    assert (
        sentence(found, "different settings")
        == "arms differ in more than the mechanism: 'better' has segments.0.steps = 8"
    )


def test_parameters_of_a_mechanism_are_no_fault(study: RecordedStudy) -> None:
    for seed in SEEDS:
        study.give("better", seed, parameters={"trained": 512, "total": 512})
    found = study.findings()
    assert (faults(found), notes(found)) == ([], ["different parameters"])
    assert "'dot' 500" in sentence(found, "different parameters")


def test_a_figure_that_is_not_what_was_recorded_is_found(study: RecordedStudy) -> None:
    study.give("better", 1, [0.6, 0.7], recorded=0.8)
    found = study.findings()
    assert faults(found) == ["summary differs"]
    assert "accuracy 0.8, and the mean of its 200 examples 0.7" in sentence(found, "summary differs")
    assert "accuracy 0.8, and the evaluation of step 20 0.7" in sentence(found, "summary differs")


def test_too_few_seeds_are_said_and_no_fault_since_no_verdict_claims_more(tmp_path: Path) -> None:
    found = RecordedStudy(tmp_path, seeds=[1, 2]).findings()
    assert (faults(found), notes(found)) == ([], ["too few seeds"])
    assert "better recall, tiny accuracy (about " in sentence(found, notes(found)[0])


@pytest.mark.parametrize(
    ("num_found", "dev", "faulty", "noted"),
    [
        (3, "d", ["trained on what is held out"], []), (2, "d", [], ["trained on what is held out"]),
        (0, "d", [], []), (9, "of older data", [], []),
    ],
    ids=["one in a hundred", "less", "none", "other data"],
)  # fmt: skip
def test_held_out_examples_that_were_trained_on_are_said(
    num_found: int, dev: str, faulty: list[str], noted: list[str], study: RecordedStudy
) -> None:
    study.ledger.add_event("overlap", json.dumps({
        "source": "recall", "unit": "sequence", "train": "t", "dev": dev, "num_train": None, "num_dev": None,
        "num_held_out": 300, "num_found": num_found,
    }))  # fmt: skip
    found = study.findings()
    assert (faults(found), notes(found)) == (faulty, noted)


@pytest.mark.usefixtures("here")
def test_a_leaking_arm_gets_its_leak_free_figure_and_overlap_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = list[str]()
    made = text_study(tmp_path, {"dot": "dot | softmax", "leak": LEAKING}, num_shared=3)
    conclusion = made.run(tmp_path / "out", say=said.append)
    (answer,) = conclusion.answers
    assert answer.verdict == "NOT COMPARABLE (its audit finds a leak)"
    assert answer.notes[0].startswith("its perplexity without access to future tokens is ")
    assert "(mean of 2 seeds), not " in answer.notes[0]
    assert "; the baseline's is " in answer.notes[0]
    assert faults(tuple(conclusion.findings)) == ["a leaking arm", "trained on what is held out"]
    overlap = "3 of 12 documents that 'text' holds out (not counting 1 headings or texts of fewer than 5 words) are"
    assert any(overlap in line for line in said)
    with open_record(tmp_path / "out") as record:
        settings = {run.arm: dict(run.run.task_settings) for run in record.runs}
        assert settings == {"dot": {"max_len": 16}, "leak": {"max_len": 16, "has_leak_free_perplexity": True}}
        assert [one.num_found for one in record.overlaps] == [3]
        (row,) = {record.results[run.id].status for run in record.runs}
        assert row == "finished"
    (tmp_path / "train.txt").unlink()  # a reader has no data
    assert main(["judge", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert "FAULT  a leaking arm" in shown
    assert "2 faults found." in shown
    assert main(["judge", str(tmp_path / "out"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["check"] == "a leaking arm"


@pytest.mark.usefixtures("here")
def test_a_probe_has_no_leak_free_figure_and_the_answer_says_so(tmp_path: Path) -> None:
    plain = content(seeds=[1], has_leaking=True)
    plain["arms"] = {"dot": "dot | softmax", "leak": LEAKING}
    (answer,) = Study.of(plain).run(tmp_path, say=quiet).answers
    assert answer.notes[0] == ("accuracy was measured with access to future tokens; this task has no leak-free figure")


@pytest.mark.parametrize("option", ["--map", "--baseline", "--examples", "--summary", "--smallest"])
def test_what_is_for_a_table_is_refused_of_a_folder(
    option: str, study: RecordedStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    study.findings()
    assert main(["judge", str(study.folder), option, "1"]) == 2
    assert f"{option} is only for tables" in capsys.readouterr().err
    assert main(["judge", str(study.folder)]) == 0
    assert "No fault found." in capsys.readouterr().out


def test_a_folder_without_a_study_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(tmp_path)]) == 2
    assert "holds no study" in capsys.readouterr().err
