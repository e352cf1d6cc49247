"""Differences in data, code, seeds, settings and evaluation sets are named, and different examples are an obstacle."""

from dataclasses import replace

from attnlab.studies.answers.comparability import (
    SelectedResults,
    are_pairs,
    contrast_predictions,
    list_differences,
    list_obstacles,
    list_same,
    list_unknown,
)
from attnlab.studies.answers.result_source import ResultSource
from attnlab.studies.integrity import Cell
from attnlab.studies.integrity.tables.table import RunPredictions

HASHES = {"the start of the weights": {"wte": "w"}, "what 'x' is evaluated on": "e", "what 'x' trains on": "b"}


def make_results(label: str, seeds: str = "12", **changes: object) -> SelectedResults:
    cells = tuple(Cell(label, "", "acc", seed, None, 0.5 + int(seed) / 9, "", "") for seed in seeds)
    runs = {("a", "", seed): ("a", "", seed) for seed in seeds}
    source = ResultSource(
        label, "a study", cells, {"text.dev": "0123456789"}, {"torch": "2.13", "commit": "a" * 40},
        {run: {"lr": "0.1"} for run in runs}, dict.fromkeys(runs, HASHES),
    )  # fmt: skip
    keys = {("", "acc", seed): ("a", "", seed) for seed in seeds}
    return SelectedResults(replace(source, **changes), label, cells, keys)  # type: ignore[arg-type]


def test_what_is_the_same() -> None:
    first, second = make_results("A"), make_results("B")
    assert list(list_differences(first, second)) == []
    copies = "every score, so these may be copies of the same results"
    assert list(list_same([first, second])) == ["data", "code", "seeds", copies, "settings"]
    assert are_pairs(first, second)


def test_each_difference_is_named() -> None:
    other = make_results(
        "B", "23", data={"text.dev": "9876543210"}, versions={"torch": "2.12", "commit": "b" * 40},
        settings={("a", "", "2"): {"lr": "0.2"}}, hashes={("a", "", "2"): {**HASHES, "what 'x' is evaluated on": "f"}},
    )  # fmt: skip
    assert list(list_differences(make_results("A"), other)) == [
        "data: text.dev differs (01234567…, 98765432…)", "code: torch 2.13 against 2.12",
        "code: commit aaaaaaaa against bbbbbbbb", "seeds: 1, 2 in A, 2, 3 in B", "settings: lr 0.1 against 0.2",
        "evaluation: A and B were evaluated on different examples",
    ]  # fmt: skip
    assert dict(list_obstacles(make_results("A"), other)) == {("B", ""): "evaluated on different examples"}
    assert not are_pairs(make_results("A"), other)


def test_a_leaking_arm_is_an_obstacle_and_what_is_not_recorded_is_said() -> None:
    other = make_results("B", obstacles={"a": "it leaks"}, data={}, versions={}, has_seeds=False)
    assert dict(list_obstacles(make_results("A"), other)) == {("B", ""): "it leaks"}
    assert list(list_unknown([make_results("A"), other])) == ["B does not record its seeds, data, code"]


def test_predictions_on_the_same_examples() -> None:
    labels = tuple("01" * 10)
    runs = [(RunPredictions("a", "", "1", given, labels),) for given in (labels, tuple("0" * 20))]
    first, second = (make_results(name, predictions=run) for name, run in zip("AB", runs, strict=True))
    (text,) = contrast_predictions(first, second)
    assert text.startswith("of 20 examples, only A is right on 10 and only B on 0; p = 0.002 (exact McNemar test)")
