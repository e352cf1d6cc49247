"""Runs and their ids: the same over processes and names, another with anything that determines the result."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.data import cache, open_source
from attnlab.data.sources import folder
from attnlab.data.sources.files import hash_content
from attnlab.errors import StudyError, TrainingError
from attnlab.studies.plan.planning import PlannedRun, hash_data
from attnlab.studies.study import Study

from ..samples import content, study

SECOND = {
    "name": "fine", "task": "mqar", "task_settings": {"vocab": 32, "length": 24}, "data": "recall", "after": "recall",
    "segments": [{"steps": 2, "batch": 4}], "smallest": 0.02,
}  # fmt: skip


def two_phases(**changes: Any) -> list[PlannedRun]:
    """Plan the study with a second phase after the first."""
    plain = content(**changes)
    return Study.of({**plain, "phases": [*plain["phases"], SECOND]}).plan()


def test_the_data_of_a_study_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SETTLED", -1)
    hashed = []

    def count(path: Path) -> str:
        hashed.append(path.name)
        return hash_content(path)

    monkeypatch.setattr(folder, "hash_content", count)
    rows = open_source("embedded:mqar?vocab=32&length=24&pairs=4&examples=33", split="train").rows()
    for name in ("train.jsonl", "dev.jsonl"):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    named = {"recall": str(tmp_path)}
    made = dataclasses.replace(study(), sources=named)
    made.plan()
    made.plan(["dot"])
    hash_data(made.design, named)
    assert sorted(hashed) == ["dev.jsonl", "train.jsonl"]


def test_trackers_change_no_id_and_are_told_the_title_and_the_study(tmp_path: Path) -> None:
    plain = study()
    tracked = dataclasses.replace(study(phases__recall__project="mine"), trackers=("wandb",))
    assert [run.id for run in tracked.plan()] == [run.id for run in plain.plan()]
    sent = plain.plan()[0].at(tmp_path)
    assert (sent.title, sent.project, sent.trackers) == (plain.plan()[0].title, plain.design.name, ())
    sent = tracked.plan()[0].at(tmp_path)
    assert (sent.project, sent.trackers) == ("mine", ("wandb",))
    with pytest.raises(TrainingError, match="no tracker 'wandbb', did you mean 'wandb'"):
        dataclasses.replace(plain, trackers=("wandbb",)).run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_arms_own_settings_are_its_runs(tmp_path: Path) -> None:
    arm = {"mechanism": "dot | softmax", "set": {
        "phases.recall.optimizer.lr": 0.5, "config.n_layer": 3, "segments.0.batch": 5, "tuning.rank": 4,
    }}  # fmt: skip
    by_arm = {run.arm: run.run for run in study(arms__other=arm).plan()}
    assert by_arm["other"].optimizer.lr == 0.5
    assert by_arm["other"].start.config["n_layer"] == 3
    assert by_arm["other"].segments[0].batch == 5
    assert by_arm["slow"].optimizer.lr == 1e-3
    assert by_arm["dot"].optimizer.lr == 3e-3
    assert by_arm["dot"].start.config["n_layer"] == 1


def test_an_arm_may_have_data_of_its_own() -> None:
    other = {"train": "embedded:mqar?vocab=32&length=24&pairs=4&examples=33"}
    own = {"mechanism": "cosine | relu", "set": {"data": "other"}}
    runs = study(data__other=other, arms__own=own).plan()
    assert {run.arm: run.run.data.train for run in runs}["own"] == other["train"]
    with pytest.raises(StudyError, match=r"phase 'recall' takes the data 'othr', did you mean 'other'"):
        study(data__other=other, arms__own={**own, "set": {"data": "othr"}}).plan()


def test_arms_that_are_one_are_refused() -> None:
    with pytest.raises(StudyError, match=r"'recall, tiny, dot, seed 1' and 'recall, tiny, twin, seed 1' are the same"):
        study(arms__twin="softmax | dot").plan()
    plain = content()
    with pytest.raises(StudyError, match=r"tiny, dot, seed 1' and 'recall, again, dot, seed 1' are the same run"):
        Study.of({**plain, "sizes": {**plain["sizes"], "again": plain["sizes"]["tiny"]}}).plan()


def test_a_later_phase_starts_from_the_same_seed_or_from_the_shared_one() -> None:
    own = {(run.phase, run.arm, run.seed): run for run in two_phases()}
    assert own["fine", "slow", 2].parent == own["recall", "slow", 2].id
    assert own["fine", "slow", 2].at(Path("runs")).start.checkpoint == f"runs/{own['recall', 'slow', 2].id}"
    shared = {(run.phase, run.arm, run.seed): run for run in two_phases(
        phases__recall__is_shared=True, phases__recall__smallest=None
    )}  # fmt: skip
    assert ("recall", "slow", 2) not in shared
    assert shared["fine", "slow", 2].parent == shared["recall", "slow", 1].id
    before, after = two_phases(), two_phases(phases__recall__clip=3.0)
    assert not {run.id for run in before} & {run.id for run in after}


def test_data_is_placed_from_outside(tmp_path: Path) -> None:
    place = "embedded:mqar?vocab=32&length=24&pairs=4&examples=44"
    design = study().design
    assert Study(design, sources={"recall": place}).plan()[0].run.data.dev is None
    split = Study(design, sources={"recall.train": place}).plan()[0].run.data
    assert (split.train, split.dev) == (place, design.data["recall"].dev)
    with pytest.raises(StudyError, match=r"takes no data called 'recal', did you mean 'recall'\?"):
        Study(design, sources={"recal": place}).plan()
