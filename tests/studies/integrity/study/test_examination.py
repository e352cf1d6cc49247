"""A study examines itself: no alarm where all is well, every planted fault found, and nothing but the ledger needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.audits import Audit, Finding, audit
from attnlab.cli import main
from attnlab.install import mechanism_of
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.integrity import IntegrityFinding
from attnlab.studies.study import Study
from tests.studies.samples import content, quiet

from .told import NUM_EXAMPLES, SEEDS, Told

LEAKING = "dot | softmax | mask(after)"


ONE_CLASS = {
    "majority_label": "yes", "majority_rate": 0.62, "predicted_counts": {"yes": NUM_EXAMPLES}, "one_class_only": True,
}  # fmt: skip


def faults(found: tuple[IntegrityFinding, ...]) -> list[str]:
    """Name the checks that found a fault."""
    return [finding.check for finding in found if finding.is_fault]


def notes(found: tuple[IntegrityFinding, ...]) -> list[str]:
    """Name the checks that found what is no fault."""
    return [finding.check for finding in found if not finding.is_fault]


def sentence(found: tuple[IntegrityFinding, ...], check: str) -> str:
    """Return what was found by a check."""
    return next(finding.sentence for finding in found if finding.check == check)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_a_sound_study_raises_no_alarm(told: Told) -> None:
    assert told.findings() == ()


@pytest.mark.parametrize("number", range(8))
def test_ties_on_small_sets_raise_no_alarm(number: int, tmp_path: Path) -> None:
    told = Told(tmp_path, seeds=list(range(1, 11)))
    draw = np.random.default_rng(number)
    for arm, seed in told.runs:
        told.give(arm, seed, [float(k) / 20 for k in draw.binomial(20, 0.5, size=2)])
    assert faults(told.findings()) == []


def test_values_that_another_seed_has_are_found(told: Told) -> None:
    for seed in (1, 2):
        told.give("better", seed, loss=[1.987654321, 1.512345678])
    found = told.findings()
    assert faults(found) == ["repeated values"]
    assert "better seed 2 has 2 of better seed 1" in sentence(found, "repeated values")


def test_a_step_that_holds_nothing_new_is_found(told: Told) -> None:
    for seed in SEEDS:
        told.give("better", seed, loss=[1.5 + seed / 7] * 2)
    assert faults(told.findings()) == ["repeated values"]


def test_an_arm_that_gives_one_answer_only_is_found_once(told: Told) -> None:
    for seed in SEEDS:
        told.give("better", seed, [0.62, 0.62], collapse=ONE_CLASS)
    found = told.findings()
    assert "one answer only" in faults(found)
    said = sentence(found, "one answer only")
    assert said.startswith("arm 'better', seeds 1, 2, 3, 4, 5: every answer is 'yes'; always predicting the most")


def test_a_classifier_that_begins_with_one_class_is_no_fault(told: Told) -> None:
    both = {**ONE_CLASS, "predicted_counts": {"yes": 120, "no": 80}, "one_class_only": False}
    for arm, seed in told.runs:
        value = 0.7 + 0.01 * seed + 0.005 * (arm == "dot")
        line = {"kind": "evaluation", "step": 5, "accuracy": 0.62, "loss": 0.66, "collapse": ONE_CLASS}
        told.give(arm, seed, [value], [1.0 + seed / 9 + len(arm) / 70], steps=[20], collapse=both)
        told.ledger.do(
            "INSERT INTO metrics VALUES (?, ?, ?, ?, ?)",
            (told.runs[arm, seed].id, "evaluation", 5, "", json.dumps(line)),
        )
    assert faults(told.findings()) == []


def test_constant_answers_are_found_in_the_folders_of_tasks_without_classes(told: Told) -> None:
    folder = told.folder / "runs" / told.runs["better", 3].id / "predictions"
    folder.mkdir(parents=True)
    answers = {str(number): "" for number in range(NUM_EXAMPLES)}
    (folder / "step-00000020.json").write_text(json.dumps({"predictions": answers}), encoding="utf-8")
    assert sentence(told.findings(), "one answer only") == "arm 'better', seed 3: every answer is ''"


def test_a_probe_asks_for_several_answers_in_an_example(told: Told) -> None:
    told.give("better", 2, [0.6, 0.7012])
    assert "impossible values" not in faults(told.findings())


def test_an_accuracy_that_is_no_share_of_the_examples_is_found(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    told.give("better", 2, [0.6, 0.7012])
    monkeypatch.setattr("attnlab.studies.integrity.study.phase_runs.PROBES", {})
    found = told.findings()
    assert "impossible values" in faults(found)
    assert f"accuracy is a multiple of 1/{NUM_EXAMPLES}; 0.7012" in sentence(found, "impossible values")


def test_a_spread_that_rests_on_one_seed_is_found(told: Told) -> None:
    for seed in SEEDS:
        told.give("better", seed, [0.6 + seed / 200, 0.05 if seed == 4 else 0.7 + seed / 200])
    found = told.findings()
    assert faults(found) == ["spread of one seed"]
    assert "better accuracy at step 20: the SD of" in sentence(found, "spread of one seed")


@pytest.mark.parametrize(
    ("line", "is_fault"), [("cosine | softmax", True), ("dot | softmax", False)], ids=["another", "the same"]
)
def test_other_budgets_are_a_fault_unless_they_are_what_is_studied(line: str, is_fault: bool, tmp_path: Path) -> None:
    own = {"mechanism": line, "set": {"segments.0.steps": 8}}
    told = Told(tmp_path, arms={"dot": "dot | softmax", "better": own})
    for seed in SEEDS:
        told.give("better", seed, steps=(10, 40), tokens=2000 + seed)
    found = told.findings()
    assert faults(found) == ["different budgets"] * is_fault
    assert notes(found) == ["different budgets"] * (not is_fault) + ["different settings"]
    assert "differ in last step: 'dot' 20, 'better' 40" in sentence(found, "different budgets").replace(
        "'better' 40, 'dot' 20", "'dot' 20, 'better' 40"
    )
    assert (
        sentence(found, "different settings")
        == "arms differ in more than the mechanism: 'better' has segments.0.steps = 8"
    )


def test_tokens_that_differ_at_the_same_steps_are_found(told: Told) -> None:
    told.give("better", 2, tokens=7)
    assert faults(told.findings()) == ["different budgets"]


def test_a_run_that_diverged_is_no_budget_of_its_own(told: Told) -> None:
    told.give("better", 2, [0.6], [2.0], steps=[10], status="diverged", tokens=7)
    assert "different budgets" not in [finding.check for finding in told.findings()]


def test_parameters_of_a_mechanism_are_no_fault(told: Told) -> None:
    for seed in SEEDS:
        told.give("better", seed, parameters={"trained": 512, "total": 512})
    found = told.findings()
    assert (faults(found), notes(found)) == ([], ["different parameters"])
    assert "'dot' 500" in sentence(found, "different parameters")


def test_a_figure_that_is_not_what_was_recorded_is_found(told: Told) -> None:
    told.give("better", 1, [0.6, 0.7], recorded=0.8)
    found = told.findings()
    assert faults(found) == ["summary differs"]
    assert "accuracy 0.8, and the mean of its 200 examples 0.7" in sentence(found, "summary differs")
    assert "accuracy 0.8, and the evaluation of step 20 0.7" in sentence(found, "summary differs")


def test_too_few_seeds_are_said_and_no_fault_since_no_verdict_claims_more(tmp_path: Path) -> None:
    found = Told(tmp_path, seeds=[1, 2]).findings()
    assert (faults(found), notes(found)) == ([], ["too few seeds"])
    assert "better recall, tiny accuracy (about " in sentence(found, notes(found)[0])


@pytest.mark.parametrize("where", ["cosine | softmax", "cosine | softmax in tiny (0)"], ids=["alone", "installed"])
def test_a_leaking_arm_is_a_fault_and_other_failed_audits_are_said(where: str, told: Told) -> None:
    told.plan({"better": "its audit finds a leak"}, {where: "causal leak", "dot | softmax": "numerics"})
    found = told.findings()
    assert (faults(found), notes(found)) == (["a leaking arm"], ["a failed audit"])
    assert f"arm 'better': It fails: causal leak (audited: {where})" in sentence(found, "a leaking arm")


@pytest.mark.parametrize(
    ("num_found", "dev", "faulty", "noted"),
    [
        (3, "d", ["trained on what is held out"], []), (2, "d", [], ["trained on what is held out"]),
        (0, "d", [], []), (9, "of older data", [], []),
    ],
    ids=["one in a hundred", "less", "none", "other data"],
)  # fmt: skip
def test_held_out_examples_that_were_trained_on_are_said(
    num_found: int, dev: str, faulty: list[str], noted: list[str], told: Told
) -> None:
    told.ledger.say("overlap", json.dumps({
        "source": "recall", "unit": "sequence", "train": "t", "dev": dev, "num_train": None, "num_dev": None,
        "num_held_out": 300, "num_found": num_found,
    }))  # fmt: skip
    found = told.findings()
    assert (faults(found), notes(found)) == (faulty, noted)


def prose(folder: Path, num_shared: int) -> Path:
    """Write a text to train on and one that is held out, with lines that stand in both but for case and spaces."""
    names = ["Ada", "Bruno", "Clara", "Dario", "Elsa", "Felix"]
    verbs = ["saw", "met", "heard", "knew", "drew"]
    lines = [f"{a} {verb} {b} near the old mill" for a in names for verb in verbs for b in names if a != b]
    train, dev = lines[::2][:60], lines[1::2][:12]
    dev[:num_shared] = [line.upper().replace(" ", "  ") for line in train[:num_shared]]
    (folder / "train.txt").write_text("\n".join(train) + "\n", encoding="utf-8")
    (folder / "dev.txt").write_text("\n".join([*dev, " = = The mill of Ada and Bruno = = "]) + "\n", encoding="utf-8")
    return folder


def text_study(folder: Path, arms: dict[str, Any], num_shared: int = 0, **changes: Any) -> Study:
    """Return a study of small language models on such a text."""
    plain = content(seeds=[1, 2], has_leaking=True)
    prose(folder, num_shared)
    plain["arms"] = arms
    plain["data"] = {"text": {"train": str(folder / "train.txt"), "dev": str(folder / "dev.txt")}}
    plain["sizes"]["tiny"]["tokenizer"] = "word:60"
    plain["phases"] = [{
        "name": "text", "task": "clm", "task_settings": {"max_len": 16}, "data": "text", "precision": "fp32",
        "segments": [{"steps": 6, "batch": 8}], "smallest": 1.0, "optimizer": {"lr": 1e-2},
    }]  # fmt: skip
    return Study.of({**plain, **changes})


@pytest.mark.usefixtures("here")
def test_a_leaking_arm_gets_its_honest_figure_and_overlap_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = list[str]()
    made = text_study(tmp_path, {"dot": "dot | softmax", "leak": LEAKING}, num_shared=3)
    conclusion = made.run(tmp_path / "out", say=said.append)
    (answer,) = conclusion.answers
    assert answer.verdict == "NOT COMPARABLE (its audit finds a leak)"
    assert answer.notes[0].startswith("fed nothing but the past its perplexity is ")
    assert "(mean of 2 seeds), not the " in answer.notes[0]
    assert "; the baseline's is " in answer.notes[0]
    assert faults(tuple(conclusion.findings)) == ["a leaking arm", "trained on what is held out"]
    overlap = "3 of 12 documents that 'text' holds out (not counting 1 headings or texts of fewer than 5 words) are"
    assert any(overlap in line for line in said)
    with open_record(tmp_path / "out") as record:
        settings = {run.arm: dict(run.run.task_settings) for run in record.runs}
        assert settings == {"dot": {"max_len": 16}, "leak": {"max_len": 16, "is_honest": True}}
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
def test_a_probe_has_no_honest_figure_and_that_is_said(tmp_path: Path) -> None:
    plain = content(seeds=[1], has_leaking=True)
    plain["arms"] = {"dot": "dot | softmax", "leak": LEAKING}
    (answer,) = Study.of(plain).run(tmp_path, say=quiet).answers
    assert answer.notes[0] == ("accuracy was measured with access to future tokens; this task has no leak-free figure")


@pytest.mark.usefixtures("here")
def test_a_leak_of_the_installed_model_alone_makes_an_arm_leak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[str, bool]]()

    def audited(model: Any, causal: bool, checks: Any) -> Audit:
        found = audit(model, causal=causal, checks=["causal leak"])
        line = str(mechanism_of(model))
        asked.append((line, causal))
        if line == "dot | softmax":
            return found
        leak = Finding("causal leak", False, 1.0, 0.0, "The model sees the future.", kind="leak")
        return Audit(found.subject, causal, type(found.findings)([leak]), 0.0)

    monkeypatch.setattr("attnlab.studies.plan.installed_arms.audit", audited)
    made = text_study(tmp_path, {"dot": "dot | softmax", "odd": "cosine | softmax"}, has_leaking=False)
    said = list[str]()
    conclusion = made.run(tmp_path / "out", say=said.append)
    assert asked == [("dot | softmax", True), ("cosine | softmax", True)]
    assert "not trained, since they have access to future tokens: odd (has_leaking = true trains them)" in said
    assert conclusion.num_runs == 2
    with open_record(tmp_path / "out") as record:
        alone, installed = record.audits["odd"]
        assert alone == "cosine | softmax"
        assert installed.startswith("cosine | softmax in tiny (")
        assert record.audit_of(installed)[0]["sentence"].startswith("Audited was GPT2LMHeadModel, ")
        assert [one["passed"] for one in record.audit_of(installed)] == [True, False]
    made.run(tmp_path / "out", say=quiet)
    assert len(asked) == 2  # once a study


@pytest.mark.usefixtures("here")
def test_an_arm_that_cannot_be_built_is_said_to_be_unaudited_and_costs_itself_alone(tmp_path: Path) -> None:
    odd = {"mechanism": "cosine | softmax", "set": {"config.n_embd": 15}}
    said = list[str]()
    made = text_study(tmp_path, {"dot": "dot | softmax", "odd": odd}, seeds=[1])
    conclusion = made.run(tmp_path / "out", say=said.append)
    assert any("cannot be audited: no model can be built from this config" in line for line in said)
    assert list(conclusion.failed) == ["text, tiny, odd, seed 1"]
    assert "a missing audit" in notes(tuple(conclusion.findings))


@pytest.mark.parametrize("option", ["--map", "--baseline", "--examples", "--summary", "--smallest"])
def test_what_is_for_a_table_is_refused_of_a_folder(
    option: str, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    told.findings()
    assert main(["judge", str(told.folder), option, "1"]) == 2
    assert f"{option} is only for tables" in capsys.readouterr().err
    assert main(["judge", str(told.folder)]) == 0
    assert "No fault found." in capsys.readouterr().out


def test_a_folder_without_a_study_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(tmp_path)]) == 2
    assert "holds no study" in capsys.readouterr().err
