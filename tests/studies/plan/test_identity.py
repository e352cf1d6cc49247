"""Ids of runs: the same over processes and names, another with anything that determines the result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import StudyError
from attnlab.studies.plan.identity import find_files, hash_stages
from attnlab.studies.study import Study

from ..samples import STUDY, content, study


def ids(**changes: Any) -> list[str]:
    """Return the ids of the study's runs."""
    return [run.id for run in study(**changes).plan()]


def test_ids_are_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    program = "import attnlab, sys; print(*[run.id for run in attnlab.Study.load(sys.argv[1]).plan()])"
    command = [sys.executable, "-c", program, str(tmp_path / "study.toml")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ids()
    assert len(set(ids())) == 6


def test_names_and_places_determine_nothing(tmp_path: Path) -> None:
    plain = content()
    plain["arms"] = dict(zip(("a", "b", "c"), plain["arms"].values(), strict=True))
    plain["sizes"] = {"other": plain["sizes"]["tiny"]}
    plain["phases"][0]["name"], plain["baseline"], plain["name"] = "renamed", "a", "another"
    plain["phases"][0]["segments"][0]["name"] = "whole"
    plain["arms"]["a"] = "softmax|dot"
    plain["phases"][0] |= {"checkpoint_every": 7, "smallest": 0.3, "trace_every": 2}
    assert [run.id for run in Study.of(plain).plan()] == ids()
    assert [run.id for run in Study(study().design, threads=2).plan()] == ids()


@pytest.mark.parametrize(
    "change",
    [
        {"phases__recall__segments__0__steps": 5}, {"phases__recall__segments__0__batch": 9}, {"seeds": [3, 4]},
        {"phases__recall__optimizer__weight_decay": 0.1}, {"phases__recall__schedule": {"kind": "cosine"}},
        {"phases__recall__clip": 2.0}, {"phases__recall__precision": "bf16"},
        {"phases__recall__evaluate_every": 2}, {"phases__recall__tuning": {"mode": "lora"}},
        {"sizes__tiny__config__n_layer": 2}, {"data__recall__num_train": 9}, {"data__recall__num_dev": 9},
        {"phases__recall__task_settings__vocab": 33},
        {"data__recall__train": "embedded:mqar?vocab=32&length=24&pairs=4&examples=81"},
        {"data__recall__dev": "embedded:mqar?vocab=32&length=24&pairs=4&examples=21"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_what_determines_the_result_is_in_the_id(change: dict[str, Any]) -> None:
    assert not set(ids(**change)) & set(ids())


def test_data_is_known_by_its_content_and_not_by_its_place(tmp_path: Path) -> None:
    rows = [f"the {word} is on the table" for word in ("cup", "pen", "book", "map")]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for split in ("train", "dev"):
            (tmp_path / name / f"{split}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def planned(place: str) -> set[str]:
        plain = content(phases__recall__task="clm", sizes__tiny__tokenizer="word:50")
        plain["phases"][0] |= {"task_settings": {"max_len": 8}, "data": "text"}
        return {run.id for run in Study(Study.of(plain).design, sources={"text": place}).plan()}

    first = planned(str(tmp_path / "one"))
    assert planned(str(tmp_path / "two")) == first
    # The dev split decides too, where it is not named but found beside the training text.
    (tmp_path / "two" / "dev.txt").write_text("\n".join(rows[:3]) + "\n", encoding="utf-8")
    assert not planned(str(tmp_path / "two")) & first


def test_what_a_model_starts_from_is_known_by_its_content(tmp_path: Path) -> None:
    def planned(name: str, text: str) -> set[str]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(text, encoding="utf-8")
        plain = content()
        plain["sizes"] = {"tiny": {"checkpoint": str(folder)}}
        return {run.id for run in Study.of(plain).plan()}

    first = planned("one", "{}")
    assert planned("two", "{}") == first
    assert not planned("two", '{"a": 1}') & first


def test_stages_of_the_users_own_are_known_by_their_file(tmp_path: Path, own_stages: None) -> None:
    from attnlab.cli.plugin import load_plugin

    from ..test_kills import OWN

    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    load_plugin(str(file))
    plain = content(arms__bypass="dot | cubed(divide=n)")
    with pytest.raises(StudyError, match=r"'cubed.*' is a stage of your own.*--plugin FILE\.py"):
        Study.of(plain).plan()
    design = Study.of(plain).design
    before = [run.id for run in Study(design, plugins=[str(file)]).plan()]
    file.write_text(OWN.replace("** 3", "** 4"), encoding="utf-8")
    after = [run.id for run in Study(design, plugins=[str(file)]).plan()]
    assert before[:2] == after[:2]
    assert before[2] != after[2]


def test_files_are_found_by_their_path_and_names_of_the_hub_are_not_files(tmp_path: Path) -> None:
    assert find_files(f"{tmp_path}:best") == (tmp_path, ":best")
    assert find_files("gpt2") is None
    assert find_files(None) is None


@pytest.mark.usefixtures("mixers")
def test_a_mixer_of_ones_own_is_hashed_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("", encoding="utf-8")
    assert list(hash_stages("mixer(average)", [str(tmp_path / "own.py")])) == ["plugin 0"]
    with pytest.raises(StudyError, match=r"'mixer\(average\)' is a stage of your own"):
        hash_stages("dot | softmax @ 0; mixer(average) @ 1", [])


def test_embedded_data_with_wrong_settings_is_not_asked_for_as_a_file() -> None:
    with pytest.raises(
        StudyError, match=r"(?s)cannot be read.*'recall'.*vocab.*correct \[data\.recall\] of the study$"
    ):
        ids(data__recall__train="embedded:mqar?vocab=1&length=24&pairs=4")
