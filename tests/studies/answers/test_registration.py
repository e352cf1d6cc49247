"""What a study declared, and what its later verdicts say of it: nothing is looked at again without a remark."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.errors import StudyError
from attnlab.studies.answers.analysis import Answer
from attnlab.studies.answers.registration import LATER, VERDICT, Declaration, digest, list_changes, register
from attnlab.studies.answers.study_folder import LEDGER, PLAN, open_record
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study

from ..folders import PAIRING, two_arms
from ..joint import horizons, three_sizes, two_tasks
from ..samples import study


class Folder:
    """A study whose runs give a fixed figure for each arm and seed, however often it is run."""

    def __init__(self, path: Path, effect: float = 0.1) -> None:
        self.path, self.effect = path, effect
        path.mkdir()

    def run(self, num_seeds: int = 5, **changed: Any) -> list[Answer]:
        """Run the study with so many seeds, and read what it says."""
        study = Study.of(two_arms(seeds=list(range(1, num_seeds + 1)), **changed))
        ledger = Ledger(self.path / LEDGER)
        planned = study.plan()
        ledger.add_event_if_new("design", json.dumps(study.design.model_dump(mode="json")))
        ledger.add_event_if_new(
            PLAN, json.dumps({"runs": [run.id for run in planned], "obstacles": {}, "data": {}, "audits": {}})
        )
        ledger.add_runs([make_row(run) for run in planned])
        known = ledger.results()
        for run in planned:
            if run.id not in known:
                noise = np.random.default_rng(run.seed + 100 * (run.arm == "better")).normal() * 0.01
                value = 0.5 + noise + self.effect * (run.arm == "better")
                last = {"step": 4, "primary": "accuracy", "figures": {"accuracy": value}}
                result = {"status": "finished", "step": 4, "num_steps": 4, "last": last}
                ledger.deliver(Delivery(run.id, ledger.begin(run.id, "here"), "finished", result, [], PAIRING, [], {}))
        ledger.close()
        return self.read()

    def read(self) -> list[Answer]:
        """Read what the study says."""
        with open_record(self.path) as record:
            return record.answers

    def register(self, num_seeds: int = 5, **changed: Any) -> Declaration:
        """Declare the study."""
        return Study.of(two_arms(seeds=list(range(1, num_seeds + 1)), **changed)).register(self.path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "study")


def words(answers: list[Answer]) -> str:
    """Return how the answers stand to what was declared; all stand alike."""
    (found,) = {answer.registration for answer in answers}
    return found


def test_a_first_verdict_says_nothing_and_is_in_the_ledger_once(folder: Folder) -> None:
    assert words(folder.run()) == ""
    assert words(folder.read()) == ""
    ledger = Ledger(folder.path / LEDGER, is_new=False)
    assert len(ledger.events(VERDICT)) == 1
    assert len(ledger.execute("SELECT * FROM answers").fetchall()) == 1
    ledger.close()


def test_what_was_registered_first_is_as_registered(folder: Folder) -> None:
    declaration = folder.register()
    answers = folder.run()
    assert words(answers) == "AS REGISTERED"
    assert any(declaration.digest in note for note in answers[0].notes)


def test_a_verdict_after_two_more_seeds_says_so_and_is_judged_by_the_e_process(folder: Folder) -> None:
    folder.run(5)
    answers = folder.run(7)
    assert words(answers) == "CHANGED AFTER LOOKING (seeds 5 → 7), UNDECLARED LOOK (2nd)"
    assert answers[0].comparison is not None
    assert "e-process" in answers[0].comparison.method
    assert words(folder.read()) == words(answers)
    assert words(folder.run(8)) == "CHANGED AFTER LOOKING (seeds 5 → 8), UNDECLARED LOOK (3rd)"


def test_going_back_to_fewer_seeds_does_not_take_back_the_look(folder: Folder) -> None:
    folder.run(6)
    assert words(folder.run(5)) == "CHANGED AFTER LOOKING (seeds 6 → 5), UNDECLARED LOOK (2nd)"
    assert words(folder.run(6)) == ""  # the same verdict, printed again


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"looks": [5, 10]}, "looks none → 5, 10"),
        ({"looks": "open"}, "looks none → open"),
        ({"baseline": "better"}, "baseline dot → better"),
    ],
)
def test_what_decides_and_was_changed_after_a_verdict_is_named(
    changed: dict[str, Any], said: str, folder: Folder
) -> None:
    folder.run()
    answers = folder.run(**changed)
    assert words(answers) == f"CHANGED AFTER LOOKING ({said})"


def test_another_threshold_or_a_longer_training_is_a_change(folder: Folder) -> None:
    folder.run()
    phases = two_arms()["phases"]
    other = [{**phases[0], "smallest": 0.05}]
    assert words(folder.run(phases=other)) == "CHANGED AFTER LOOKING (smallest of recall 0.02 → 0.05)"
    longer = [{**phases[0], "segments": [{"steps": 9, "batch": 8}]}]
    assert words(folder.run(phases=longer)) == "CHANGED AFTER LOOKING (training of recall)"
    watched = [{**phases[0], "log_every": 3}]
    assert words(folder.run(phases=watched)) in ("", "AS REGISTERED")  # what changes no result is no change


def test_an_arm_that_is_added_after_a_verdict_is_named(folder: Folder) -> None:
    folder.run()
    arms = {**two_arms()["arms"], "third": "dot | sigmoid"}
    assert words(folder.run(arms=arms)) == "CHANGED AFTER LOOKING (arms + third)"


def test_declared_looks_are_no_change(folder: Folder) -> None:
    assert words(folder.run(5, looks=[5, 10])) == ""
    answers = folder.run(10, looks=[5, 10])
    assert words(answers) == "AS REGISTERED"
    assert answers[0].comparison is not None
    assert "e-process" not in answers[0].comparison.method


def test_a_look_between_the_declared_ones_is_undeclared(folder: Folder) -> None:
    assert words(folder.run(7, looks=[5, 10])) == "UNDECLARED LOOK (1st)"
    assert words(folder.run(8, looks=[5, 10])) == "CHANGED AFTER LOOKING (seeds 7 → 8), UNDECLARED LOOK (2nd)"


def test_too_few_seeds_for_a_verdict_are_no_look(folder: Folder) -> None:
    assert folder.run(3)[0].verdict.startswith("TOO FEW SEEDS")
    assert words(folder.run(5)) == ""


def test_a_registration_can_be_replaced_only_before_a_verdict(folder: Folder) -> None:
    folder.register(5)
    folder.register(6)
    assert words(folder.run(6)) == "AS REGISTERED"
    with pytest.raises(StudyError, match="has printed verdicts already"):
        folder.register(6)


def test_a_study_that_is_run_otherwise_than_registered_says_so(folder: Folder) -> None:
    folder.register(6)
    answers = folder.run(5)
    assert words(answers) == ""
    assert any("not as registered (seeds 6 → 5)" in note for note in answers[0].notes)


def test_a_declaration_is_the_same_after_a_round_trip(folder: Folder, tmp_path: Path) -> None:
    design = Study.of(two_arms()).design
    ledger = Ledger(tmp_path / "ledger.sqlite")
    declared = register(ledger, design)
    assert list_changes(declared, Declaration.of(design)) == []
    ledger.close()


def test_a_new_setting_with_a_default_leaves_what_was_declared_as_it_was() -> None:
    # The hash is stored in ledgers: if it changes, every study of before says CHANGED AFTER LOOKING.
    declared = Declaration.of(study().design)
    assert declared.training == {"recall": "88d3be90632b5f66"}
    assert declared.digest == "cc8e609616af0f81"


def test_trends_horizons_and_conclusions_are_declared_and_leave_other_digests_as_they_were() -> None:
    plain = Declaration.of(Study.of(two_tasks(conclusion=None)).design)
    content = {name: value for name, value in asdict(plain).items() if name not in LATER}
    assert plain.digest == digest(content)  # as before there were any
    asked = Declaration.of(Study.of(two_tasks()).design)
    assert asked.digest != plain.digest
    assert list_changes(plain, asked) == ["the conclusion"]
    trend, other = (Declaration.of(Study.of(three_sizes(trend=trend)).design) for trend in ({}, {"smallest": 0.5}))
    assert list_changes(trend, other) == ["the trend"]
    long, longer = (Declaration.of(Study.of(horizons(horizons=steps)).design) for steps in ([2, 4], [2, 4, 8]))
    assert "the horizons" in list_changes(long, longer)
    assert Declaration(**json.loads(json.dumps(asdict(long)))) == long
