"""The runs of a phase as a table: which evaluations, examples, answers and budgets count."""

import json

import pytest

from .recorded_study import NUM_EXAMPLES, SEEDS, RecordedStudy, faults, sentence

ONE_CLASS = {
    "majority_label": "yes", "majority_rate": 0.62, "predicted_counts": {"yes": NUM_EXAMPLES}, "one_class_only": True,
}  # fmt: skip


def test_an_arm_that_gives_one_answer_only_is_found_once(study: RecordedStudy) -> None:
    for seed in SEEDS:
        study.give("better", seed, [0.62, 0.62], collapse=ONE_CLASS)
    found = study.findings()
    assert "one answer only" in faults(found)
    said = sentence(found, "one answer only")
    assert said.startswith("arm 'better', seeds 1, 2, 3, 4, 5: every answer is 'yes'; always predicting the most")


def test_a_classifier_that_begins_with_one_class_is_no_fault(study: RecordedStudy) -> None:
    both = {**ONE_CLASS, "predicted_counts": {"yes": 120, "no": 80}, "one_class_only": False}
    for arm, seed in study.runs:
        value = 0.7 + 0.01 * seed + 0.005 * (arm == "dot")
        line = {"kind": "evaluation", "step": 5, "accuracy": 0.62, "loss": 0.66, "collapse": ONE_CLASS}
        study.give(arm, seed, [value], [1.0 + seed / 9 + len(arm) / 70], steps=[20], collapse=both, before=[line])
    assert faults(study.findings()) == []


def test_constant_answers_are_found_in_the_folders_of_tasks_without_classes(study: RecordedStudy) -> None:
    folder = study.folder / "runs" / study.runs["better", 3].id / "predictions"
    folder.mkdir(parents=True)
    answers = {str(number): "" for number in range(NUM_EXAMPLES)}
    (folder / "step-00000020.json").write_text(json.dumps({"predictions": answers}), encoding="utf-8")
    assert sentence(study.findings(), "one answer only") == "arm 'better', seed 3: every answer is ''"


def test_a_probe_asks_for_several_answers_in_an_example(study: RecordedStudy) -> None:
    study.give("better", 2, [0.6, 0.7012])
    assert "impossible values" not in faults(study.findings())


def test_an_accuracy_that_is_no_share_of_the_examples_is_found(
    study: RecordedStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.give("better", 2, [0.6, 0.7012])
    monkeypatch.setattr("attnlab.studies.integrity.study.phase_runs.PROBES", {})
    found = study.findings()
    assert "impossible values" in faults(found)
    assert f"accuracy is a multiple of 1/{NUM_EXAMPLES}; 0.7012" in sentence(found, "impossible values")


def test_tokens_that_differ_at_the_same_steps_are_found(study: RecordedStudy) -> None:
    study.give("better", 2, tokens=7)
    assert faults(study.findings()) == ["different budgets"]


def test_a_run_that_diverged_is_no_budget_of_its_own(study: RecordedStudy) -> None:
    study.give("better", 2, [0.6], [2.0], steps=[10], status="diverged", tokens=7)
    assert "different budgets" not in [finding.check for finding in study.findings()]
