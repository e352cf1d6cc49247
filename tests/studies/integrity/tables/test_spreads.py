"""A spread is an SD, a standard error or half an interval, as the user or the caption says; runs have none."""

from dataclasses import replace

import pytest

from attnlab.studies.integrity.tables.caption import SpreadKind
from attnlab.studies.integrity.tables.spreads import describe_spreads, settle_spreads
from attnlab.studies.integrity.tables.table import Cell


def make_mean(arm: str, seed: str = "1") -> Cell:
    return Cell(arm, "", "acc", seed, None, 82.0, "82.0", "line 2", sd=0.5)


@pytest.mark.parametrize(("kind", "sd"), [(None, 0.5), ("sd", 0.5), ("se", 1.0), ("ci", 0.5 * 2 / 3.182446)])
def test_the_sd_follows_from_the_kind_of_spread(kind: SpreadKind | None, sd: float) -> None:
    cells, _ = settle_spreads([make_mean("a"), make_mean("b")], "", 4, kind)
    assert [cell.sd for cell in cells] == pytest.approx([sd, sd])
    assert {cell.num_seeds for cell in cells} == {4}


def test_the_caption_is_used_and_said() -> None:
    cells, reading = settle_spreads([make_mean("a")], "± standard error over 5 seeds", None, None)
    assert list(describe_spreads(cells, reading)) == [
        "means with ± standard error (the caption)",
        "5 seeds each (the caption)",
    ]


def test_rows_of_runs_have_no_spread() -> None:
    cells, reading = settle_spreads([make_mean("a", "1"), make_mean("a", "2")], "5 seeds", None, None)
    assert not any(cell.is_mean for cell in cells)
    assert list(describe_spreads(cells, reading)) == [
        "an arm has several rows, so each is a run, and its own ± is not used"
    ]


@pytest.mark.parametrize(("has_seeds", "number"), [(False, 5), (True, None)])
def test_the_caption_gives_the_seeds_of_means_without_spread(has_seeds: bool, number: int | None) -> None:
    mean = replace(make_mean("a"), sd=None)
    cells, _ = settle_spreads([mean], "Accuracy averaged over 5 seeds.", None, None, has_seeds)
    assert [cell.num_seeds for cell in cells] == [number]


@pytest.mark.parametrize(
    ("cells", "has_seeds", "words"),
    [
        ([make_mean("a", "1"), make_mean("a", "2")], True,
         [f"--{option} not used, since the table has the score of each seed" for option in ("seeds 5", "spread se")]),
        ([replace(make_mean("a", "1"), sd=None)], True,
         [f"--{option} not used, since each value is that of one seed" for option in ("seeds 5", "spread se")]),
        ([replace(make_mean("a", "1"), sd=None)], False, ["--spread se not used, since no cell has a ±"]),
        ([make_mean("a", "1")], False, []),
    ],
)  # fmt: skip
def test_options_without_an_effect_are_named(cells: list[Cell], has_seeds: bool, words: list[str]) -> None:
    settled, reading = settle_spreads(cells, "", 5, "se", has_seeds)
    assert len(reading.unused) == len(words)
    assert all(text.startswith(start) for text, start in zip(reading.unused, words, strict=True))
    assert set(reading.unused) <= {*describe_spreads(settled, reading)}


def test_one_seed_without_a_spread_is_a_run_and_no_mean() -> None:
    run = replace(make_mean("a"), sd=None)
    cells, reading = settle_spreads([run], "Results of a single run.", None, None)
    assert cells == (run,)
    assert list(describe_spreads(cells, reading)) == ["1 seed each (the caption)"]


def test_one_seed_of_a_caption_is_not_that_of_several_rows() -> None:
    runs = [replace(make_mean("a", seed), sd=None) for seed in "12"]
    _, reading = settle_spreads(runs, "a single seed", None, None)
    assert reading.unused == ("1 seed (the caption) not used, since an arm has several rows, each read as a run",)


def test_a_caption_with_two_numbers_of_seeds_says_that_none_is_taken() -> None:
    cells, reading = settle_spreads([make_mean("a")], "3 seeds for base, 5 seeds for large", None, None)
    assert cells[0].num_seeds is None
    assert any(words.startswith("the caption names 3 and 5 seeds") for words in describe_spreads(cells, reading))
