"""From a ledger to verdicts: pairs that are none, failed seeds, examples, families, looks; no arm is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from attnlab.studies.answers import analysis
from attnlab.studies.answers.analysis import Answer, conclude
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study

from ..samples import content

SEEDS = [1, 2, 3, 4, 5]
PAIRING = {"weights": {"wte": "w", "own": "x"}, "batches": "b", "evaluation": "e"}
Values = Sequence[float | None]


class Case:
    """A study whose runs have given what a test says."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        plain = content(seeds=SEEDS)
        plain["arms"] = {"dot": "dot | softmax", "better": "cosine | softmax"}
        self.plain = {**plain, **changes}
        self.study = Study.of(self.plain)
        self.planned = self.study.plan()
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.ledger.add_runs([make_row(run) for run in self.planned])

    def give(self, arm: str, values: Values, name: str = "accuracy", **changes: Any) -> None:
        """Deliver the figures of an arm's seeds; None is a run that diverged, NaN one without a figure."""
        runs = [run for run in self.planned if run.arm == arm]
        for run, value in zip(runs, values, strict=True):
            figures = {name: "NaN" if value != value else value}
            last = None if value is None else {"step": 1, "primary": name, "figures": figures}
            status = "diverged" if value is None else "finished"
            given = {"metrics": [], "pairing": PAIRING, "ids": [], "scores": {}, **changes}
            attempt = self.ledger.begin(run.id, "here")
            self.ledger.deliver(Delivery(run.id, attempt, status, {"last": last}, **given))

    def answers(self, **obstacles: str) -> dict[str, Answer]:
        """Return the answers by arm."""
        found = conclude(self.study.design, self.planned, self.ledger, obstacles).single
        return {answer.arm: answer for answer in found}


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    found = Case(tmp_path)
    yield found
    found.ledger.close()


BASE = [0.50, 0.52, 0.51, 0.49, 0.53]
HIGH = [0.60, 0.63, 0.60, 0.59, 0.64]


def test_an_arm_is_compared_with_the_baseline_seed_by_seed(case: Case) -> None:
    case.give("dot", BASE)
    case.give("better", HIGH)
    answer = case.answers()["better"]
    assert answer.verdict == "BETTER BY AT LEAST 0.02 AT SHARED SETTINGS"
    assert (answer.figure, answer.phase, answer.size) == ("accuracy", "recall", "tiny")
    assert answer.comparison is not None
    assert answer.comparison.difference == pytest.approx(0.102)
    assert answer.comparison.data.paired
    assert answer.record()["comparison"]["verdict"] == "BETTER BY AT LEAST 0.02 AT SHARED SETTINGS"


def test_less_is_more_where_the_figure_says_so(case: Case) -> None:
    case.give("dot", BASE, "loss")
    case.give("better", HIGH, "loss")
    assert case.answers()["better"].verdict == "WORSE BY AT LEAST 0.02 AT SHARED SETTINGS"


def test_perplexities_are_compared_by_their_logarithms_in_percent(case: Case) -> None:
    case.give("dot", [100.0, 102, 101, 99, 103], "perplexity")
    case.give("better", [90.0, 91.8, 90.9, 89.1, 92.8], "perplexity")
    answer = case.answers()["better"]
    assert answer.comparison is not None
    assert answer.comparison.difference == pytest.approx(-10, abs=0.05)
    assert answer.verdict == "BETTER BY AT LEAST 0.02 % AT SHARED SETTINGS"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"batches": "other"}, "not paired: what 'recall' trains on differs at seed 1, and 4 more"),
        ({"evaluation": "other"}, "not paired: what 'recall' is evaluated on differs at seed 1, and 4 more"),
        ({"weights": {"wte": "other"}}, "not paired: the start of the weights differs at seed 1, and 4 more"),
    ],
)
def test_runs_that_are_no_pairs_are_not_compared(other: dict[str, Any], reason: str, case: Case) -> None:
    case.give("dot", BASE)
    case.give("better", HIGH, pairing={**PAIRING, **other})
    assert case.answers()["better"].verdict == f"NOT COMPARABLE ({reason})"


def test_weights_that_one_arm_alone_has_are_no_obstacle(case: Case) -> None:
    case.give("dot", BASE)
    case.give("better", HIGH, pairing={**PAIRING, "weights": {"wte": "w", "alpha": "a"}})
    assert case.answers()["better"].verdict.startswith("BETTER")


def test_failed_seeds_are_counted_and_never_dropped(case: Case) -> None:
    case.give("dot", BASE)
    case.give("better", [None, float("nan"), *HIGH[2:]])
    answer = case.answers()["better"]
    assert answer.verdict == "TOO FEW SEEDS (n < 5)"
    assert "2 of 5 runs of the variant have no score" in answer.notes
    assert answer.comparison is not None
    assert [row[2] for row in answer.comparison.per_seed].count(None) == 2


def test_an_arm_that_fails_more_often_is_not_comparable(tmp_path: Path) -> None:
    case = Case(tmp_path, seeds=list(range(12)))
    case.give("dot", [*BASE, *BASE, 0.5, 0.51])
    case.give("better", [*HIGH, None, None, None, None, None, None, None])
    assert case.answers()["better"].verdict.startswith("NOT COMPARABLE (0 of 12 runs of the baseline and 7 of 12")
    case.ledger.close()


@pytest.mark.parametrize("arm", ["dot", "better"])
def test_an_arm_without_any_figure_is_answered_too(arm: str, case: Case) -> None:
    case.give("dot", [None] * 5 if arm == "dot" else BASE)
    case.give("better", [None] * 5 if arm == "better" else HIGH)
    who = "the baseline" if arm == "dot" else "it"
    answer = case.answers()["better"]
    assert answer.verdict == f"NOT COMPARABLE (none of the 5 runs of {who} has a figure)"
    assert answer.comparison is None


def test_nothing_that_was_evaluated_is_said_to_be_so(case: Case) -> None:
    assert case.answers()["better"].verdict.startswith("NOT COMPARABLE (no run has a figure")


def test_seeds_that_never_met_are_not_compared(case: Case) -> None:
    case.give("dot", [0.5, 0.5, None, None, None])
    case.give("better", [None, None, 0.6, 0.6, 0.6])
    assert case.answers()["better"].verdict == "NOT COMPARABLE (no seed has a figure in both arms)"


@pytest.mark.parametrize(
    ("obstacles", "why"), [({"better": "it leaks"}, "it leaks"), ({"dot": "it leaks"}, "of the baseline, it leaks")]
)
def test_obstacles_of_an_arm_or_of_the_baseline_are_the_verdict(
    obstacles: dict[str, str], why: str, case: Case
) -> None:
    case.give("dot", BASE)
    case.give("better", HIGH)
    answer = case.answers(**obstacles)["better"]
    assert answer.verdict == f"NOT COMPARABLE ({why})"
    assert answer.comparison is not None


def examples(mean: float, seed: int) -> list[float]:
    """Return scores of examples with a mean."""
    draw = np.random.default_rng(seed).normal(size=20)
    return list(draw - draw.mean() + mean)


@pytest.mark.parametrize(("has_other_ids", "has_other_mean"), [(False, False), (True, False), (False, True)])
def test_scores_of_examples_are_used_where_the_figure_is_their_mean(
    has_other_ids: bool, has_other_mean: bool, case: Case
) -> None:
    for number, (arm, values) in enumerate((("dot", BASE), ("better", HIGH))):
        ids = [str(at + has_other_ids * number) for at in range(20)]
        for run, value in zip([one for one in case.planned if one.arm == arm], values, strict=True):
            scores = {"accuracy": examples(value + 0.1 * has_other_mean, run.seed)}
            last = {"step": 1, "primary": "accuracy", "figures": {"accuracy": value}}
            attempt = case.ledger.begin(run.id, "here")
            case.ledger.deliver(Delivery(run.id, attempt, "finished", {"last": last}, [], PAIRING, ids, scores))
    comparison = case.answers()["better"].comparison
    assert comparison is not None
    assert comparison.data.scores is not None
    assert comparison.data.scores[0].num_examples == (None if has_other_ids or has_other_mean else 20)
    assert comparison.difference == pytest.approx(0.102)


def test_several_arms_are_one_family(tmp_path: Path) -> None:
    arms = {"dot": "dot | softmax", "better": "cosine | softmax", "third": "dot | sigmoid"}
    case = Case(tmp_path, arms=arms)
    case.give("dot", BASE)
    case.give("better", HIGH)
    case.give("third", BASE[::-1])
    found = case.answers()
    assert list(found) == ["better", "third"]
    comparison = found["better"].comparison
    assert comparison is not None
    assert comparison.level == pytest.approx(0.025)
    case.ledger.close()


def looked(folder: Path, looks: Any, num_seeds: int, num_failed: int = 0) -> Answer:
    """Return the answer of a study with declared looks."""
    case = Case(folder, looks=looks, seeds=list(range(num_seeds)))
    draw = np.random.default_rng(0)
    case.give("dot", list(0.5 + 0.01 * draw.normal(size=num_seeds)))
    case.give("better", [*[None] * num_failed, *(0.6 + 0.01 * draw.normal(size=num_seeds - num_failed))])
    answer = case.answers()["better"]
    case.ledger.close()
    return answer


def test_a_look_has_its_own_limit(tmp_path: Path) -> None:
    answer = looked(tmp_path, [5, 10, 15, 20], 10)
    assert answer.comparison is not None
    assert answer.comparison.level == pytest.approx(0.0042, abs=5e-5)
    assert answer.verdict.startswith("BETTER")


def test_a_number_of_seeds_that_was_not_declared_is_judged_by_the_e_process(tmp_path: Path) -> None:
    answer = looked(tmp_path, [5, 10], 7)
    assert answer.registration == "UNDECLARED LOOK (1st)"
    assert answer.comparison is not None
    assert "e-process" in answer.comparison.method


def test_a_look_with_failed_seeds_takes_the_limit_of_the_one_before(tmp_path: Path) -> None:
    answer = looked(tmp_path, [5, 10, 15, 20], 10, num_failed=1)
    assert answer.comparison is not None
    assert answer.comparison.level == pytest.approx(5.16e-5, rel=0.01)


def test_too_few_seeds_for_a_first_look_are_too_few(tmp_path: Path) -> None:
    assert looked(tmp_path, [5, 10], 3).verdict == "TOO FEW SEEDS (n < 5)"


def test_an_open_study_is_looked_at_by_an_e_process(tmp_path: Path) -> None:
    answer = looked(tmp_path, "open", 12)
    assert answer.comparison is not None
    assert "e-process" in answer.comparison.method.lower()


@pytest.fixture
def analyses(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Count how often answers are computed."""
    counted = Mock(wraps=analysis.analyse)
    monkeypatch.setattr(analysis, "analyse", counted)
    return counted


@pytest.mark.parametrize("clusters", [None, [f"article {at // 4}" for at in range(20)]])
@pytest.mark.parametrize("name", ["accuracy", "loss", "perplexity"])
def test_stored_answers_are_the_ones_that_were_computed(
    name: str, clusters: list[str] | None, case: Case, analyses: Mock
) -> None:
    for run in case.planned:
        has_diverged = (run.arm, run.seed) == ("better", 5)
        value = (BASE if run.arm == "dot" else HIGH)[run.seed - 1]
        last = None if has_diverged else {"step": 1, "primary": name, "figures": {name: value}}
        status, attempt = "diverged" if has_diverged else "finished", case.ledger.begin(run.id, "here")
        scores = {} if has_diverged else {name: examples(value, run.seed + (run.arm == "dot"))}
        ids = list(map(str, range(20)))
        case.ledger.deliver(Delivery(run.id, attempt, status, {"last": last}, [], PAIRING, ids, scores, clusters))
    computed, stored = case.answers()["better"], case.answers()["better"]
    assert analyses.call_count == 1
    assert computed.comparison is not None
    assert str(stored.comparison) == str(computed.comparison)
    assert stored.record() == computed.record()


def test_answers_are_computed_again_if_what_they_rest_on_changed(
    case: Case, analyses: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.give("dot", BASE)
    assert case.answers()["better"].verdict.startswith("NOT COMPARABLE (none of the 5 runs of it")
    case.give("better", HIGH)
    assert case.answers()["better"].verdict.startswith("BETTER")
    assert case.answers(better="it leaks")["better"].verdict == "NOT COMPARABLE (it leaks)"
    case.study = Study.of({**case.plain, "question": "and now?"})
    case.answers()
    monkeypatch.setattr(analysis, "_digest_code", lambda: "another version")
    case.answers()
    assert analyses.call_count == 5
    case.answers()
    assert analyses.call_count == 5
