"""What a table shows: the interval that decides, one family, failed runs, floors, ceilings, curves and log scales."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import IntegrityKind
from tests.studies.integrity.result_tables import (
    WRITERS,
    Recipe,
    Write,
    draw_records,
    get_comparison,
    get_only_row,
    judge_file,
    list_faults,
    make_records,
    select,
    write_long,
    write_rows,
    write_wide,
)


def test_all_primary_comparisons_are_one_family_whatever_their_metric_and_group(tmp_path: Path) -> None:
    recipe = Recipe(groups=("s", "m", "l"), metrics=("em", "f1"), arms=("baseline", "a", "b"), num_seeds=6)
    path = write_long(tmp_path / "t.csv", make_records(recipe))
    rows = judge_file(path).analyses[0].rows
    assert len(rows) == 12
    assert min(get_comparison(row).level for row in rows) == pytest.approx(0.05 / 12)
    some = judge_file(path, primary=["f1"])
    assert some.primary == ("f1",)
    by_role = {role: [row for row in some.analyses[0].rows if row.role == role] for role in ("primary", "exploratory")}
    assert {row.metric for row in by_role["primary"]} == {"f1"}
    assert min(get_comparison(row).level for row in by_role["primary"]) == pytest.approx(0.05 / 6)
    assert {row.verdict for row in by_role["exploratory"]} == {"(exploratory)"}


def test_a_verdict_that_uses_no_p_has_no_adjusted_one(tmp_path: Path) -> None:
    row = get_only_row(judge_file(write_long(tmp_path / "t.csv", make_records(Recipe(num_seeds=3, metrics=("em",))))))
    assert row.verdict.startswith("TOO FEW SEEDS")
    assert math.isnan(row.adjusted_p)


def test_nulls_of_a_whole_table_are_rarely_called_different(tmp_path: Path) -> None:
    """Three arms, three groups, two metrics: a false verdict in at most 5 % of tables, and some error of simulation."""
    num_false = 0
    for number in range(30):
        recipe = Recipe(seed=number, groups=("s", "m", "l"), arms=("baseline", "a", "b", "c"), num_seeds=6)
        rows = judge_file(write_long(tmp_path / "t.csv", make_records(recipe))).analyses[0].rows
        num_false += any(row.verdict.startswith(("BETTER", "WORSE")) for row in rows)
    assert num_false <= 4


def test_the_interval_that_is_shown_is_the_one_that_decides(tmp_path: Path) -> None:
    for number in range(20):
        records = make_records(Recipe(seed=number, groups=("s", "l"), metrics=("em", "f1"), spread=0.02, num_seeds=6))
        for row in judge_file(write_long(tmp_path / "t.csv", records)).analyses[0].rows:
            comparison = get_comparison(row)
            low, high = comparison.interval
            is_without_zero = low > 0 or high < 0
            assert is_without_zero == row.verdict.startswith(("BETTER", "WORSE"))
            assert is_without_zero == (row.adjusted_p <= 0.05)


def test_what_cannot_be_compared_counts_in_the_family(tmp_path: Path) -> None:
    records = draw_records({"base": 60.0, "a": 62.0, "b": 60.0})
    for record in records:
        if record["arm"] == "b":
            record["value"] /= 100
    levels = [
        get_comparison(judge_file(write_long(tmp_path / "t.csv", records), units=units).analyses[0].rows[0]).level
        for units in (None, "convert")
    ]
    assert levels[0] == levels[1] == pytest.approx(0.025)


def test_failed_runs_in_a_family_of_five(tmp_path: Path) -> None:
    means = {"base": 60.0, **{f"a{n}": 60.0 for n in range(4)}, "new": 65.0}
    records = draw_records(means, 10)
    for record in records:
        if record["arm"] == "new" and record["seed"] < 5:
            record["value"] = None
    rows = {row.arm: row for row in judge_file(write_long(tmp_path / "t.csv", records)).analyses[0].rows}
    assert rows["new"].verdict.startswith("NOT COMPARABLE (0 of 10 runs of the baseline and 5 of 10")


def test_an_arm_whose_runs_all_failed_stays_in_the_table(tmp_path: Path) -> None:
    records = draw_records({"base": 60.0, "new": 61.0, "other": 62.0})
    for record in records:
        record["value"] = None if record["arm"] == "new" else record["value"]
    rows = {row.arm: row.verdict for row in judge_file(write_long(tmp_path / "t.csv", records)).analyses[0].rows}
    assert rows["new"] == "NOT COMPARABLE (all 8 runs of 'new' failed)"
    assert rows["other"].startswith("BETTER")


@pytest.mark.parametrize("steps", [(500, 1000, 1500, 2000), (1, 2, 3, 4, 5)])
@pytest.mark.parametrize("as_wide", [True, False])
def test_a_curve_that_still_rises_is_still_training(tmp_path: Path, steps: tuple[int, ...], as_wide: bool) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=steps, num_seeds=6))
    path = (write_wide if as_wide else write_long)(tmp_path / "t.csv", records)
    assert get_only_row(judge_file(path)).verdict.startswith("STILL TRAINING, ")
    assert not get_only_row(judge_file(path, smallest=20)).verdict.startswith("STILL TRAINING")


def test_seeds_that_would_settle_it_are_not_counted_while_runs_still_train(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=(500, 1000, 1500, 2000), num_seeds=3))
    found = judge_file(write_long(tmp_path / "t.csv", records))
    (finding,) = [one for one in found.findings if one.kind == IntegrityKind.TOO_FEW_SEEDS]
    assert "3 seeds per arm at step 2000; " in finding.sentence
    assert "how many more would settle it is not estimated while its runs still train" in finding.sentence
    assert "about" not in finding.sentence
    assert math.isnan(get_comparison(get_only_row(found)).plan.more)


def test_a_flat_curve_and_one_without_its_last_fifth_are_not(tmp_path: Path) -> None:
    for steps in ((500, 1000, 1500, 2000), (100, 2000)):
        records = make_records(Recipe(metrics=("f1",), steps=steps, num_seeds=6))
        if len(steps) > 2:
            last = {(r["arm"], r["seed"]): r["value"] for r in records if r["step"] == 2000}
            for record in records:
                record["value"] = last[record["arm"], record["seed"]] + 1e-3 * (record["step"] % 7)
        assert "STILL TRAINING" not in get_only_row(judge_file(write_long(tmp_path / "t.csv", records))).verdict


@pytest.mark.parametrize(("percent", "values"), [(True, "100"), (True, "100.0"), (False, "1.0"), (False, "1")])
def test_both_arms_at_the_ceiling(tmp_path: Path, percent: bool, values: str) -> None:
    rows = [f"{arm},{seed},{values}" for arm in ("a", "b") for seed in range(5)]
    assert get_only_row(judge_file(write_rows(tmp_path, "arm,seed,accuracy", rows))).verdict == "BOTH AT CEILING"
    near = [
        f"{arm},{seed},{(99.6 + seed / 20) / (1 if percent else 100):.4f}" for arm in ("a", "b") for seed in range(5)
    ]
    assert get_only_row(judge_file(write_rows(tmp_path, "arm,seed,accuracy", near))).verdict == "BOTH AT CEILING"


@pytest.mark.parametrize("floor", [0.2121, {"accuracy": 0.2121}])
def test_a_task_that_neither_arm_learned(tmp_path: Path, floor: Any) -> None:
    records = draw_records({"base": 0.2115, "new": 0.2138}, sd=0.002, metric="accuracy")
    path = write_long(tmp_path / "t.csv", records)
    assert get_only_row(judge_file(path, floor=floor)).verdict == "NEITHER LEARNED THE TASK"
    assert get_only_row(judge_file(path)).verdict != "NEITHER LEARNED THE TASK"
    assert get_only_row(judge_file(path, floor=0.1)).verdict != "NEITHER LEARNED THE TASK"


@pytest.mark.parametrize("metric", ["perplexity", "eval_ppl"])
@pytest.mark.parametrize("size", [20.0, 2000.0])
def test_perplexities_are_compared_by_their_logarithm(tmp_path: Path, metric: str, size: float) -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"{arm},{seed},{size * factor * math.exp(0.002 * rng.standard_normal())}"
        for arm, factor in (("base", 1.0), ("new", 0.97)) for seed in range(6)
    ]  # fmt: skip
    row = get_only_row(judge_file(write_rows(tmp_path, f"arm,seed,{metric}", rows)))
    assert row.verdict == "BETTER BY AT LEAST 1 %"
    assert get_comparison(row).difference == pytest.approx(-3.0, abs=0.3)
    assert get_comparison(row).data.baseline.mean == pytest.approx(size, rel=0.01)
    assert get_only_row(judge_file(write_rows(tmp_path, f"arm,seed,{metric}", rows), smallest=5)).verdict.endswith(
        "BELOW YOUR THRESHOLD"
    )


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("num_seeds", "need"), [(1, "(one seed shows no spread to plan from)"), (3, "more would settle it"), (4, "about ")]
)
def test_too_few_seeds(tmp_path: Path, write: Write, num_seeds: int, need: str) -> None:
    records = make_records(Recipe(num_seeds=num_seeds, metrics=("f1",), steps=(1, 2)))
    found = judge_file(write(tmp_path / "t.csv", records))
    assert found.is_clean
    (finding,) = [one for one in found.findings if one.kind == IntegrityKind.TOO_FEW_SEEDS]
    assert need in finding.sentence
    assert "per arm at step 2; " in finding.sentence
    assert {row.verdict for row in found.analyses[0].rows} == {"TOO FEW SEEDS (n < 5)"}


def test_runs_that_failed_are_counted(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), num_seeds=8))
    for record in select(records, arm="cosine")[:6]:
        record["value"] = None
    row = judge_file(write_long(tmp_path / "t.csv", records)).analyses[0].rows[0]
    assert row.comparison is not None
    assert row.verdict == "NOT COMPARABLE (0 of 8 runs of the baseline and 6 of 8 of the variant failed)"
    assert row.comparison.stability == "LESS STABLE"


def test_losses_are_better_below(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("loss",), num_seeds=8))
    for record in select(records, arm="cosine"):
        record["value"] -= 5
    (row,) = judge_file(write_long(tmp_path / "t.csv", records), smallest=0.1).analyses[0].rows
    assert row.verdict == "BETTER BY AT LEAST 0.1"
    assert row.comparison is not None
    assert row.comparison.difference < 0


def test_pairs_are_compared_if_the_user_says_so(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{70 + 3 * seed + (arm == 'b') * (1 + seed % 3 / 9)}" for arm in "ab" for seed in range(6)]
    path = write_rows(tmp_path, "arm,seed,f1", rows)
    unpaired, paired = (get_comparison(get_only_row(judge_file(path, is_paired=it))) for it in (False, True))
    assert (unpaired.data.paired, paired.data.paired) == (False, True)
    assert paired.p < 0.01 < unpaired.p


def test_an_impossible_value_leaves_the_other_pairs(tmp_path: Path) -> None:
    right = {"a": (180, 181, 183, 179, 184, 182), "b": (186, 185, 188, 187, 189, 190)}
    rows = [
        f"{arm},{seed},{number / 2.77:.2f},277" for arm, of_arm in right.items() for seed, number in enumerate(of_arm)
    ]
    rows[8] = "b,2,68.80,277"
    found = judge_file(write_rows(tmp_path, "arm,seed,accuracy,n_test", rows), is_paired=True)
    comparison = get_comparison(get_only_row(found))
    assert (comparison.data.paired, comparison.data.num_seeds, comparison.data.num_runs) == (True, 5, 5)
    (fault,) = found.faults
    assert "so is the value of the same seed in the other arm" in fault.sentence


def test_pairs_without_a_common_seed_are_not_compared(tmp_path: Path) -> None:
    rows = ["a,1,70", "a,2,", "b,1,nan", "b,2,72"]
    row = get_only_row(judge_file(write_rows(tmp_path, "arm,seed,f1", rows), is_paired=True))
    assert "no seed has a score of both the baseline and 'b'" in row.verdict


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("arm,seed,f1", ["a,1,70", "a,2,71", "b,1,72"], "seed '2' is only in one of 'a' and 'b'"),
        ("arm,f1", ["a,70", "b,72"], "needs the seed of every run"),
    ],
)
def test_pairs_need_the_same_seeds(tmp_path: Path, header: str, rows: list[str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        judge_file(write_rows(tmp_path, header, rows), is_paired=True)


@pytest.mark.parametrize(("smallest", "excluded"), [(1.0, "a difference of 1"), (0.4, "0")])
def test_what_settles_a_comparison_is_said(tmp_path: Path, smallest: float, excluded: str) -> None:
    path = write_rows(tmp_path, "method,accuracy,n_seeds", ["base,82.0 ± 0.5,3", "ours,82.4 ± 0.5,3"])
    sentence = judge_file(path, smallest=smallest).findings[0].sentence
    assert f"more would settle it by excluding {excluded}). With so many more seeds per arm the verdict" in sentence
    assert "the verdict interval at 95 % excludes this value with 80 % power" in sentence


def test_fractions_do_not_lower_the_default_threshold(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{80 + (shift + 7 * seed) / 100}" for shift, arm in enumerate("abc") for seed in range(5)]
    clean = judge_file(write_rows(tmp_path, "arm,seed,score", rows))
    mixed = judge_file(
        write_rows(tmp_path, "arm,seed,score", [*rows[:-3], *(f"c,{seed},0.80{seed}" for seed in (2, 3, 4))])
    )
    thresholds = [get_comparison(found.analyses[-1].rows[0]).question.smallest for found in (clean, mixed)]
    assert thresholds == [0.8, 0.8]
    assert list_faults(mixed) == ["mixed units"]
