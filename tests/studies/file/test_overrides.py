"""Settings by their paths: of a study with --set, and of an arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.file.overrides import apply_settings, find_wrong_settings, set_value
from attnlab.studies.file.reading import read_design

from ..samples import STUDY, study
from .refusals import refusal


def test_settings_are_reached_by_their_paths(file: Path) -> None:
    assign = {"seeds": [7], "phases.recall.optimizer.lr": 0.1, "phases.0.clip": None, "sizes.0.5B.architecture": "bert"}
    found = read_design(file, None, {"phases.recall.optimizer.lr": 0.1, "phases.0.clip": None, "seeds": [7]})
    assert (found.seeds, found.phases[0].optimizer.lr, found.phases[0].clip) == ([7], 0.1, None)
    file.write_text(STUDY.replace("sizes.tiny", 'sizes."0.5B"'), encoding="utf-8")
    found = read_design(file, None, {**assign, "sizes.0.5B.config.n_layer": 3})
    assert found.sizes["0.5B"].architecture == "bert"
    assert found.sizes["0.5B"].config["n_layer"] == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("phases.recal.clip", "--set: 'phases.recal.clip' does not exist: there is no 'phases.recal'"),
        ("phases.²", "does not exist"),
        ("phases.9.clip", "does not exist"),
        ("name.x", "does not exist"),
        (".".join("a" * 99), "no setting is that deep"),
        ("phases.recall.cilp", "--set phases.recall.cilp: there is no 'phases.0.cilp', did you mean 'clip'?"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(where: str, message: str, file: Path) -> None:
    assert message in refusal(file, STUDY, None, {where: 1})


def test_a_value_that_was_set_is_said_to_be_so(file: Path) -> None:
    assert refusal(file, STUDY, None, {"seeds": ["x"]}).startswith("--set seeds: 'seeds.0': should be a valid integer")


def test_a_table_is_merged_and_a_missing_one_is_made() -> None:
    plain: dict[str, Any] = {"a": {"b": 1, "c": 2}, "list": [{"name": "x.y", "d": 1}]}
    assert set_value(plain, "a", {"b": 3}, "a test") == [("a", "b")]
    assert set_value(plain, "list.x.y.e.f", 4, "a test") == [("list", "0", "e", "f")]
    assert plain == {"a": {"b": 3, "c": 2}, "list": [{"name": "x.y", "d": 1, "e": {"f": 4}}]}
    with pytest.raises(StudyError, match=r"a test: 'list.9.e' does not exist: there is no 'list.9'"):
        set_value(plain, "list.9.e", 4, "a test")


def test_the_values_of_a_search_are_reached_by_the_path_of_their_setting() -> None:
    plain: dict[str, Any] = {"arms": {"a": {}}}
    set_value(plain, "search.over.optimizer.lr", [1], "a test")
    set_value(plain, "arms.a.over.optimizer.lr", [2], "a test")
    set_value(plain, "arms", {"a": {"over": {"clip": [3]}}}, "a test")
    assert plain["search"] == {"over": {"optimizer.lr": [1]}}
    assert plain["arms"]["a"] == {"over": {"optimizer.lr": [2], "clip": [3]}}


def test_an_arms_settings_change_its_phases_and_no_other() -> None:
    design = study(arms__own={"mechanism": "cosine", "set": {"clip": 2.0, "phases.recall.optimizer.lr": 0.5}}).design
    phase = design.phases[0]
    changed = apply_settings(phase, design.arms["own"])
    assert (changed.clip, changed.optimizer.lr) == (2.0, 0.5)
    other = apply_settings(phase.model_copy(update={"name": "later"}), design.arms["own"])
    assert (other.clip, other.optimizer.lr) == (2.0, phase.optimizer.lr)
    assert list(find_wrong_settings(design)) == []
