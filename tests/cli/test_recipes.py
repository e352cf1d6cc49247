"""`attnlab recipes` lists and copies studies at once, and predicts their times only if asked."""

import json
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.cli.recipes import format_rough_time
from attnlab.studies.file.reading import read_design
from attnlab.studies.file.recipes import list_recipes

from .test_quick import run_quickly


def test_the_list_has_the_runs_of_every_budget_and_needs_no_torch() -> None:
    listed = {recipe["name"]: recipe for recipe in json.loads(run_quickly("recipes", "--json"))}
    assert set(listed) == set(list_recipes())
    assert "seconds" not in listed["quickstart"]
    assert {name: listed[name]["answered_by"] for name in ("quickstart", "minigpt-masks", "probes")} == {
        "quickstart": "smoke", "minigpt-masks": "minutes", "probes": "laptop",
    }  # fmt: skip
    design = read_design(list_recipes()["value-bypass"], "smoke")
    num_seeds = sum(1 if phase.is_shared else len(design.seeds) for phase in design.phases)
    assert listed["value-bypass"]["runs"]["smoke"] == num_seeds * len(design.arms) * len(design.sizes)


def test_a_recipe_is_listed_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["recipes"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in list_recipes())
    assert all(example in listed for example in ("[search] over = {", 'match = "operations"', "[trend] over = "))
    assert "Answered by: the smallest budget that answers the question" in listed
    assert main(["recipes", "copy", "probes"]) == 0
    assert "attnlab run probes.toml --budget laptop --out DIR runs it" in capsys.readouterr().out
    assert Path("probes.toml").read_bytes() == list_recipes()["probes"].read_bytes()
    assert main(["recipes", "copy", "probes"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["recipes", "copy", "prob"]) == 2
    assert main(["recipes", "paste"]) == 2


@pytest.mark.parametrize(
    ("span", "words"),
    [(1.26, "1.3 s"), (89, "89 s"), (90, "1.5 min"), (5399, "90 min"), (5400, "1.5 h"), (1.1e7, "130 days")],
)
def test_a_span_has_two_digits(span: float, words: str) -> None:
    assert format_rough_time(span) == words


def test_the_list_has_seconds_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "--times", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    for one in listed.values():
        for budget, found in one["seconds"].items():
            assert (found is None) == bool(one["unknown"][budget])
    assert listed["quickstart"]["seconds"]["paper"] > listed["quickstart"]["seconds"]["laptop"]
    assert listed["minigpt-scores"]["seconds"]["paper"] is None
    assert main(["recipes", "--times"]) == 0
    said = capsys.readouterr().out
    assert "Times are predicted, not measured" in said
    assert "— depends on data or models that are not here" in said
