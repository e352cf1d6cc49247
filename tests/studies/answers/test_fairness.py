"""The condition of a verdict, and what the baseline against itself shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.answers.analysis import Answer, conclude, count_comparisons
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.plan.matching import Matching, RunCount
from attnlab.studies.run.execution import make_row
from attnlab.studies.run.matching_record import record_matching
from attnlab.studies.study import Study

from ..folders import BETTER, DOT, two_arms

SAME = {"weights": {"wte": "w", "mlp": "m"}, "shapes": {"wte": [2], "mlp": [4]}, "batches": "b", "evaluation": "e"}
NARROW = {**SAME, "weights": {"wte": "w", "mlp": "n"}, "shapes": {"wte": [2], "mlp": [3]}}
OTHER_SEED = {**SAME, "weights": {"wte": "x", "mlp": "y"}, "batches": "c"}
COUNTS = {
    ("recall", "tiny", "dot"): RunCount((4,), (9.0,), 100, 8),
    ("recall", "tiny", "better"): RunCount((4,), (9.0,), 100, 8, config={"n_inner": 3}),
}


def judge(
    folder: Path, plain: Mapping[str, Any], values: Mapping[str, Sequence[float]],
    pairings: Mapping[str, Mapping[str, Any]], matching: Matching | None = None,
) -> dict[str, Answer]:  # fmt: skip
    """Return the answers by arm of a study whose runs have these figures. matching: as if it had been counted."""
    study = Study.of(plain)
    planned = study._make_planner((), matching).list_runs(None)
    ledger = Ledger(folder / "ledger.sqlite")
    record_matching(ledger, matching or Matching())
    ledger.add_runs([make_row(run) for run in planned])
    for run in planned:
        value = values[run.arm][run.seed - 1]
        last = {"step": 4, "primary": "accuracy", "figures": {"accuracy": value}}
        attempt = ledger.begin(run.id, "here")
        ledger.deliver(Delivery(run.id, attempt, "finished", {"last": last}, [], pairings.get(run.arm, SAME), [], {}))
    answers = conclude(study.design, planned, ledger, {}).single
    ledger.close()
    return {answer.arm: answer for answer in answers}


def test_arms_with_other_settings_are_not_at_shared_settings(tmp_path: Path) -> None:
    arms = {"dot": "dot | softmax", "better": {"mechanism": "cosine | softmax", "set": {"optimizer.lr": 1e-3}}}
    found = judge(tmp_path, two_arms(arms=arms), {"dot": DOT, "better": BETTER}, {})["better"]
    assert found.verdict == "BETTER BY AT LEAST 0.02"


def test_weights_of_another_width_need_not_start_equal_if_the_study_says_so(tmp_path: Path) -> None:
    values, pairings = {"dot": DOT, "better": BETTER}, {"better": NARROW}
    matching = Matching("parameters", COUNTS, "", "basis")
    found = judge(tmp_path, two_arms(match="parameters"), values, pairings, matching)["better"]
    assert found.verdict == "BETTER BY AT LEAST 0.02 AT EQUAL PARAMETERS, AT SHARED SETTINGS"
    assert any("better with n_inner = 3 has 100 parameters and dot 100" in note for note in found.notes)
    assert any("another shape" in note for note in found.notes)


def test_a_weight_of_the_same_shape_must_start_equal_at_equal_parameters(tmp_path: Path) -> None:
    pairings = {"better": {**NARROW, "weights": {"wte": "other", "mlp": "n"}}}
    matching = Matching("parameters", COUNTS, "", "basis")
    found = judge(tmp_path, two_arms(match="parameters"), {"dot": DOT, "better": BETTER}, pairings, matching)["better"]
    assert found.verdict.startswith("NOT COMPARABLE")


def test_another_width_without_a_match_is_not_comparable(tmp_path: Path) -> None:
    found = judge(tmp_path, two_arms(), {"dot": DOT, "better": BETTER}, {"better": NARROW})["better"]
    assert found.verdict.startswith("NOT COMPARABLE")


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ((0.51, 0.50, 0.53, 0.52, 0.49), "the noise floor: the baseline differs from itself by"),
        (BETTER, "differs from itself:"),
    ],
)
def test_the_baseline_against_itself_is_apart_from_the_family(
    values: Sequence[float], note: str, tmp_path: Path
) -> None:
    plain = two_arms(aa=True)
    found = judge(tmp_path, plain, {"dot": DOT, "better": BETTER, "aa": values}, {"aa": OTHER_SEED})
    better, again = found["better"].comparison, found["aa"].comparison
    assert better is not None
    assert again is not None
    assert better.family is None or better.family.size == 1
    assert (better.level, again.level, again.data.paired) == (0.05, 0.05, False)
    assert any(note in text for text in found["aa"].notes)
    assert count_comparisons(Study.of(plain).design) == 1
