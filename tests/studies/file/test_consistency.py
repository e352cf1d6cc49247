"""Consistency of a study: names that do not exist, phases that cannot follow each other, chosen arms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.file.addresses import split_address
from attnlab.studies.file.consistency import choose_entries, find_misfits

from ..samples import STUDY, study
from .refusals import refusal


def test_a_phase_cannot_start_from_what_tuned_a_part_alone(file: Path) -> None:
    text = STUDY.replace("[phases.optimizer]", '[phases.tuning]\nmode = "lora"\n[phases.optimizer]')
    text += (
        '[[phases]]\nname = "next"\ntask = "mqar"\ndata = "recall"\nafter = "recall"\n[[phases.segments]]\nsteps = 1\n'
    )
    assert "'recall' tunes a 'lora' alone" in refusal(file, text.replace("[budgets", "[[phases]]\n[budgets", 0))


def test_some_of_the_arms_and_sizes_are_taken() -> None:
    runs = study(only_arms=["dot", "slow"], only_sizes=["tiny"]).plan()
    assert list(dict.fromkeys(run.arm for run in runs)) == ["dot", "slow"]
    with pytest.raises(StudyError, match=r"none of the arms is called 'slo', did you mean 'slow'"):
        study(only_arms=["dot", "slo"])
    with pytest.raises(StudyError, match=r"no arm is called 'dot'"):
        study(only_arms=["slow"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"optimizer.lr" = 1e-3', '"optimiser.lr" = 1', "cannot set 'optimiser.lr', did you mean 'optimizer'?"),
        ('"optimizer.lr" = 1e-3', '"phases.recal.clip" = 2.0', "no phase is called 'recal', did you mean 'recall'?"),
        ('"optimizer.lr" = 1e-3', '"phases.recall" = 2', "an arm cannot set 'phases.recall'"),
        ('"optimizer.lr" = 1e-3', 'after = "other"', "an arm cannot set 'after'"),
        ('"optimizer.lr" = 1e-3', "config = 3", "give a setting inside 'config', such as 'config.n_layer'"),
        ('"optimizer.lr" = 1e-3', '"phases.recall.config.n_layer" = 3', "all phases have the same model"),
        ("seeds = [1, 2]", "seeds = [1, 2, 1]", "seed 1 is listed twice"),
        ('data = "recall"', 'data = "recall"\nafter = "clm"', "no phase before this one is called 'clm'"),
        ("smallest = 0.02", "smallest = 0.02\nis_shared = true", "a shared phase has one seed"),
    ],
)
def test_an_inconsistent_study_is_refused_at_the_line_of_its_value(
    old: str, new: str, message: str, file: Path
) -> None:
    said = refusal(file, STUDY.replace(old, new, 1))
    assert message in said
    assert said.startswith(f"{file}, line ")
    assert len(said.splitlines()) < 5


@pytest.mark.parametrize("content", [{}, {"arms": [], "phases": 3, "seeds": "x"}, {"arms": {"a": 1}, "phases": [2]}])
def test_data_of_any_shape_is_checked_without_a_traceback(content: dict[str, Any]) -> None:
    assert find_misfits(content) == []
    assert choose_entries({**content, "only_arms": ["a"]})["only_arms"] == ["a"]


def test_the_phase_of_a_setting_may_have_dots_in_its_name() -> None:
    assert split_address("phases.a.b.clip", ["a", "a.b"]) == ("a.b", "clip")
    assert split_address("phases.other.clip", ["a"]) == ("other", "clip")
    assert split_address("optimizer.lr", ["a"]) == (None, "optimizer.lr")
