"""The headline: a verdict per arm in words and numbers, the state of the study, the length of training."""

import re
from pathlib import Path

from attnlab.reports import write_report
from attnlab.reports.study.page import render_page
from attnlab.studies.ledger.database import Delivery
from tests.studies.samples import content

from .made import ARMS, BASE, HIGH, PAIRING, Made
from .reading import contents


def test_verdicts_are_said_in_words_and_numbers(folder: Path) -> None:
    better, worse = contents(folder).headline.verdicts
    assert (better.arm, better.verdict, better.tone) == ("better", "BETTER BY AT LEAST 0.02 AT SHARED SETTINGS", "good")
    assert re.fullmatch(r"difference in accuracy \+0\.102 \[\+0\.\d+, \+0\.\d+\] over 5 paired seeds", better.numbers)
    assert (worse.verdict, worse.numbers[:22]) == ("TOO FEW SEEDS (n < 5)", "difference in accuracy")


def test_an_unfinished_study_has_no_verdict(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE)
    made.give("better", HIGH[:2])
    page = write_report(made.done()).read_text(encoding="utf-8")
    found = contents(tmp_path)
    assert found.headline.state.startswith("7 of 10 runs have ended. There are no verdicts yet")
    assert not found.headline.verdicts
    assert [figure.kind for figure in found.figures] == ["seeds"]
    assert "BETTER" not in page


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    made = Made(tmp_path, seeds=[1])
    made.give("dot", BASE[:1]).give("better", HIGH[:1])
    found = contents(made.done())
    assert found.headline.verdicts[0].numbers == "difference in accuracy +0.1 over 1 paired seed"
    assert "1 seed per arm: the spread is almost unknown, so there is no verdict." in found.limits
    assert render_page(found)


def test_the_length_of_training_is_that_of_the_runs(tmp_path: Path) -> None:
    arms = {**ARMS, "long": {"mechanism": "angle | softmax", "set": {"phases.recall.segments.0.steps": 1200}}}
    phases = content()["phases"]
    segments = [{"epochs": 1.5, "batch": 8}, {"epochs": 1.0, "batch": 1}]
    made = Made(tmp_path, arms=arms, phases=[*phases, {**phases[0], "name": "again", "segments": segments}])
    said = "Length of training: 4 updates of 8 rows in recall (long: 1,200 updates of 8 rows); 1.5 epochs of 8 rows, "
    state = contents(tmp_path).headline.state
    assert state.endswith(f"{said}then 1 epoch of 1 row in again.")
    last = {"step": 95, "primary": "accuracy", "figures": {"accuracy": 0.5}}
    for run in [run for run in made.planned if run.phase == "again"]:
        result = {"last": last, "step": 95, "num_steps": 95, "seconds": 1.0, "tokens": 10}
        attempt = made.ledger.begin(run.id, "here")
        made.ledger.deliver(Delivery(run.id, attempt, "finished", result, [], PAIRING, [], {}))
    assert contents(made.done()).headline.state.endswith("then 1 epoch of 1 row (95 updates in all) in again.")
