"""The recipes are studies that can be planned, with the sizes and settings they were published with."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.errors import StudyError
from attnlab.mechanisms import UNIFORM
from attnlab.studies.file.reading import read_design
from attnlab.studies.file.recipes import find_study, list_recipes, read_purpose
from attnlab.studies.study import Study
from attnlab.training import build

BUDGETS = ("smoke", "laptop", "paper")
NAMES = (
    "quickstart", "boolq-tuning", "cosine-bert", "learning-rates", "minigpt-masks", "minigpt-scores", "minigpt-sharing",
    "probes", "sst2-roberta", "value-bypass", "value-bypass-transfer",
)  # fmt: skip


def test_these_are_the_recipes() -> None:
    assert tuple(list_recipes()) == NAMES
    assert all(len(read_purpose(file)) > 20 for file in list_recipes().values())


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_has_its_three_budgets_and_its_own_name(name: str) -> None:
    for budget in BUDGETS:
        assert read_design(list_recipes()[name], budget).name == name


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_budget_can_be_planned_without_a_network(name: str) -> None:
    study = Study.load(list_recipes()[name], "smoke")
    assert len(study.plan()) >= 4
    assert all(phase.smallest is not None for phase in study.design.phases)


def test_the_small_gpt_has_the_published_size() -> None:
    study = Study.load(
        list_recipes()["minigpt-scores"], "smoke", assign={"sizes.minigpt.config.n_positions": 1024, "seeds": [1]}
    )
    job = build(study.plan()[0].run)
    embedded = job.model.config.vocab_size * 48 * 2  # its words come from the text, and have a head of their own
    assert job.model.num_parameters() - embedded == 2_688_048 - 26_604 * 48 * 2


def test_the_probes_ask_the_whole_catalog() -> None:
    design = read_design(list_recipes()["probes"])
    assert {name: arm.mechanism for name, arm in design.arms.items()} == {
        # Its models have one head, so that there is nothing to group and no pair, and two layers.
        name: str(mechanism)
        for name, mechanism in UNIFORM.items()
        if mechanism.kv_heads is None and name != "differential"
    }


def test_the_bypass_is_studied_as_published() -> None:
    design = read_design(list_recipes()["value-bypass"], "paper")
    assert design.seeds == [42, 2, 8, 9, 5]
    pretrain, squad = design.phases
    segments = [(segment.steps, segment.batch, segment.length) for segment in pretrain.segments]
    assert segments == [(65000, 48, 128), (15000, 48, 512)]
    assert (squad.segments[0].epochs, squad.segments[0].batch, squad.optimizer.lr) == (3, 64, 5e-5)
    assert {size.architecture for size in design.sizes.values()} == {"bert", "roberta-prelayernorm"}
    assert design.arms["first-half"].line("8L-512").endswith("layers=0-3)")
    assert design.arms["last-half"].line("6L-384").endswith("layers=3-5)")
    assert pretrain.schedule.warmup == squad.schedule.warmup == 0.1


def test_the_bypass_has_fewer_arms_and_more_seeds_than_were_published() -> None:
    planned, published = (read_design(list_recipes()["value-bypass"], budget) for budget in (None, "paper"))
    assert (len(planned.arms), len(planned.sizes), len(planned.seeds)) == (3, 2, 20)
    assert (len(published.arms), len(published.sizes), len(published.seeds)) == (17, 8, 5)
    assert next(iter(planned.sizes.values())).architecture == "roberta-prelayernorm"


@pytest.mark.parametrize("name", ["boolq-tuning", "sst2-roberta", "cosine-bert", "learning-rates"])
def test_every_arm_is_tuned(name: str) -> None:
    for budget in BUDGETS:
        design = read_design(list_recipes()[name], budget)
        assert design.search is not None
        assert "optimizer.lr" in design.search.over
        assert not any("optimizer.lr" in arm.set for arm in design.arms.values())


def test_sgd_has_rates_of_its_own() -> None:
    for budget in BUDGETS:
        design = read_design(list_recipes()["sst2-roberta"], budget)
        assert design.search is not None
        own, others = design.arms["sgd"].over["optimizer.lr"], design.search.over["optimizer.lr"]
        assert min(own) > max(others)


def test_what_is_missing_is_said_at_once() -> None:
    places = {"sizes.bert.checkpoint": "/not/there/bert", "sizes.roberta.checkpoint": "/not/there/roberta"}
    study = Study.load(list_recipes()["boolq-tuning"], assign=places, data={"boolq.train": "not/there.jsonl"})
    with pytest.raises(StudyError) as caught:
        study.plan()
    said = str(caught.value)
    for words in (
        "data 'boolq' of phase 'boolq'",
        "--data boolq=PATH",
        "size 'bert'",
        "size 'roberta'",
        "--set sizes.",
    ):
        assert words in said


def test_a_name_or_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_study("probes") == list_recipes()["probes"]
    assert find_study("mine.toml") == Path("mine.toml")
    Path("probes").write_text("", encoding="utf-8")
    assert find_study("probes") == Path("probes")  # a file of that name is nearer
    with pytest.raises(StudyError, match="did you mean 'quickstart'"):
        find_study("quikstart")
