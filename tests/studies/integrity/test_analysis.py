"""What a table shows: the interval that decides, one family, failed runs, floors, ceilings, curves and log scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.statistics import Comparison
from attnlab.studies.integrity import Judgement, JudgeOptions, judge, read_table
from attnlab.studies.integrity.analysis import ComparisonRow
from attnlab.studies.integrity.tables.pairs import measure_late_gain
from attnlab.studies.integrity.tables.table import Cell
from tests.studies.integrity.result_tables import Recipe, Record, make_records, write_long, write_wide

WRITERS = [write_long, write_wide]


def judged(path: str, **request: Any) -> Judgement:
    return judge(read_table(path), JudgeOptions(**request))


def write(tmp_path: Path, header: str, rows: list[str]) -> str:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return str(path)


def only(found: Judgement) -> ComparisonRow:
    (row,) = found.analyses[-1].rows
    return row


def comparison_of(row: ComparisonRow) -> Comparison:
    assert row.comparison is not None
    return row.comparison


def draw(
    means: dict[str, float], num_seeds: int = 8, sd: float = 0.3, seed: int = 0, metric: str = "f1"
) -> list[Record]:
    rng = np.random.default_rng(seed)
    return [
        {"arm": arm, "size": "s", "seed": number, "step": None, "metric": metric, "value": mean + sd * float(noise)}
        for arm, mean in means.items() for number, noise in enumerate(rng.standard_normal(num_seeds))
    ]  # fmt: skip


def test_all_primary_comparisons_are_one_family_whatever_their_metric_and_group(tmp_path: Path) -> None:
    recipe = Recipe(groups=("s", "m", "l"), metrics=("em", "f1"), arms=("baseline", "a", "b"), num_seeds=6)
    path = write_long(tmp_path / "t.csv", make_records(recipe))
    rows = judged(path).analyses[0].rows
    assert len(rows) == 12
    assert min(comparison_of(row).level for row in rows) == pytest.approx(0.05 / 12)
    some = judged(path, primary=["f1"])
    assert some.primary == ("f1",)
    by_role = {role: [row for row in some.analyses[0].rows if row.role == role] for role in ("primary", "exploratory")}
    assert {row.metric for row in by_role["primary"]} == {"f1"}
    assert min(comparison_of(row).level for row in by_role["primary"]) == pytest.approx(0.05 / 6)
    assert {row.verdict for row in by_role["exploratory"]} == {"(exploratory)"}


def test_nulls_of_a_whole_table_are_rarely_called_different(tmp_path: Path) -> None:
    """Three arms, three groups, two metrics: a false verdict in at most 5 % of tables, and some error of simulation."""
    num_false = 0
    for number in range(30):
        recipe = Recipe(seed=number, groups=("s", "m", "l"), arms=("baseline", "a", "b", "c"), num_seeds=6)
        rows = judged(write_long(tmp_path / "t.csv", make_records(recipe))).analyses[0].rows
        num_false += any(row.verdict.startswith(("BETTER", "WORSE")) for row in rows)
    assert num_false <= 4


def test_the_interval_that_is_shown_is_the_one_that_decides(tmp_path: Path) -> None:
    for number in range(20):
        records = make_records(Recipe(seed=number, groups=("s", "l"), metrics=("em", "f1"), spread=0.02, num_seeds=6))
        for row in judged(write_long(tmp_path / "t.csv", records)).analyses[0].rows:
            comparison = comparison_of(row)
            low, high = comparison.interval
            is_without_zero = low > 0 or high < 0
            assert is_without_zero == row.verdict.startswith(("BETTER", "WORSE"))
            assert is_without_zero == (row.adjusted_p <= 0.05)


def test_what_cannot_be_compared_counts_in_the_family(tmp_path: Path) -> None:
    records = draw({"base": 60.0, "a": 62.0, "b": 60.0})
    for record in records:
        if record["arm"] == "b":
            record["value"] /= 100
    levels = [
        comparison_of(judged(write_long(tmp_path / "t.csv", records), units=units).analyses[0].rows[0]).level
        for units in (None, "convert")
    ]
    assert levels[0] == levels[1] == pytest.approx(0.025)


@pytest.mark.parametrize("word", ["nan", "", "diverged", "inf"])
@pytest.mark.parametrize(
    ("num_failed", "verdict"),
    [(5, "NOT COMPARABLE (0 of 10 runs of the baseline and 5 of 10 of the variant failed)"), (3, "BETTER")],
)
def test_failed_runs_get_the_words_of_failures(tmp_path: Path, word: str, num_failed: int, verdict: str) -> None:
    rows = []
    for record in draw({"base": 60.0, "new": 65.0}, 10):
        is_failed = record["arm"] == "new" and record["seed"] < num_failed
        rows.append(f"{record['arm']},{record['seed']},{word if is_failed else record['value']}")
    found = judged(write(tmp_path, "arm,seed,f1", rows))
    assert only(found).verdict.startswith(verdict)
    assert only(found).verdict != "BETTER BY AT LEAST 1"
    (note,) = [finding for finding in found.findings if finding.check == "runs without a score"]
    assert not note.is_fault
    assert note.data["num_missing"] == num_failed


def test_failed_runs_in_a_family_of_five(tmp_path: Path) -> None:
    means = {"base": 60.0, **{f"a{n}": 60.0 for n in range(4)}, "new": 65.0}
    records = draw(means, 10)
    for record in records:
        if record["arm"] == "new" and record["seed"] < 5:
            record["value"] = None
    rows = {row.arm: row for row in judged(write_long(tmp_path / "t.csv", records)).analyses[0].rows}
    assert rows["new"].verdict.startswith("NOT COMPARABLE (0 of 10 runs of the baseline and 5 of 10")


def test_an_arm_whose_runs_all_failed_stays_in_the_table(tmp_path: Path) -> None:
    records = draw({"base": 60.0, "new": 61.0, "other": 62.0})
    for record in records:
        record["value"] = None if record["arm"] == "new" else record["value"]
    rows = {row.arm: row.verdict for row in judged(write_long(tmp_path / "t.csv", records)).analyses[0].rows}
    assert rows["new"] == "NOT COMPARABLE (all 8 runs of 'new' failed)"
    assert rows["other"].startswith("BETTER")


def test_a_run_that_ends_early_counts_as_failed(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=(500, 1000, 1500, 2000), num_seeds=10))
    records = [r for r in records if not (r["arm"] == "cosine" and r["seed"] < 6 and r["step"] > 1000)]
    found = judged(write_long(tmp_path / "t.csv", records))
    assert only(found).verdict.startswith("NOT COMPARABLE (0 of 10 runs of the baseline and 6 of 10 of the variant")
    (note,) = [finding for finding in found.findings if finding.check == "runs without a score"]
    assert "(ends at an earlier step)" in note.sentence


def test_groups_and_metrics_are_compared_at_their_own_last_step(tmp_path: Path) -> None:
    records = make_records(Recipe(groups=("s", "l"), steps=(500, 1000, 1500, 2000), num_seeds=6))
    records = [r for r in records if r["size"] == "l" or r["step"] <= 1500]
    records = [r for r in records if r["metric"] == "f1" or r["step"] <= 1000]
    (analysis,) = judged(write_long(tmp_path / "t.csv", records)).analyses
    steps = {(row.group, row.metric): row.step for row in analysis.rows}
    assert steps == {("s", "em"): 1000, ("l", "em"): 1000, ("s", "f1"): 1500, ("l", "f1"): 2000}
    assert {comparison_of(row).data.num_seeds for row in analysis.rows} == {6}
    assert analysis.title == "the last step of each comparison"


def test_a_best_step_for_each_run_is_no_curve(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{3 + seed},{60 + seed / 7 + (arm == 'b'):.3f}" for arm in ("a", "b") for seed in range(6)]
    row = only(judged(write(tmp_path, "arm,seed,epoch,f1", rows)))
    assert comparison_of(row).data.num_seeds == 6
    assert row.step is None


@pytest.mark.parametrize("steps", [(500, 1000, 1500, 2000), (1, 2, 3, 4, 5)])
@pytest.mark.parametrize("as_wide", [True, False])
def test_a_curve_that_still_rises_is_still_training(tmp_path: Path, steps: tuple[int, ...], as_wide: bool) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=steps, num_seeds=6))
    path = (write_wide if as_wide else write_long)(tmp_path / "t.csv", records)
    assert only(judged(path)).verdict.startswith("STILL TRAINING, ")
    assert not only(judged(path, smallest=20)).verdict.startswith("STILL TRAINING")


def test_a_flat_curve_and_one_without_its_last_fifth_are_not(tmp_path: Path) -> None:
    for steps in ((500, 1000, 1500, 2000), (100, 2000)):
        records = make_records(Recipe(metrics=("f1",), steps=steps, num_seeds=6))
        if len(steps) > 2:
            last = {(r["arm"], r["seed"]): r["value"] for r in records if r["step"] == 2000}
            for record in records:
                record["value"] = last[record["arm"], record["seed"]] + 1e-3 * (record["step"] % 7)
        assert "STILL TRAINING" not in only(judged(write_long(tmp_path / "t.csv", records))).verdict


def cell(step: float, value: float) -> Cell:
    return Cell("a", "", "f1", "1", step, value, str(value), "")


@pytest.mark.parametrize(
    ("curve", "gain"),
    [
        ({0: 0, 800: 8, 1000: 10}, 2.0),
        ({750: 5, 1000: 10}, 4.0),  # 800 lies a fifth of the way from 750 to 1000
        ({700: 6, 900: 8, 1000: 8}, 1.0),
        ({100: 0, 1000: 9}, None),  # the last fifth is not recorded
        ({900: 8, 1000: 10}, None),
        ({800: 8}, None),
    ],
)
def test_the_gain_of_the_last_fifth(curve: dict[float, float], gain: float | None) -> None:
    found = measure_late_gain([cell(step, value) for step, value in curve.items()], 1000, is_log=False)
    assert found is None if gain is None else found == pytest.approx(gain)


@pytest.mark.parametrize(("percent", "values"), [(True, "100"), (True, "100.0"), (False, "1.0"), (False, "1")])
def test_both_arms_at_the_ceiling(tmp_path: Path, percent: bool, values: str) -> None:
    rows = [f"{arm},{seed},{values}" for arm in ("a", "b") for seed in range(5)]
    assert only(judged(write(tmp_path, "arm,seed,accuracy", rows))).verdict == "BOTH AT CEILING"
    near = [
        f"{arm},{seed},{(99.6 + seed / 20) / (1 if percent else 100):.4f}" for arm in ("a", "b") for seed in range(5)
    ]
    assert only(judged(write(tmp_path, "arm,seed,accuracy", near))).verdict == "BOTH AT CEILING"


@pytest.mark.parametrize("floor", [0.2121, {"accuracy": 0.2121}])
def test_a_task_that_neither_arm_learned(tmp_path: Path, floor: Any) -> None:
    records = draw({"base": 0.2115, "new": 0.2138}, sd=0.002, metric="accuracy")
    path = write_long(tmp_path / "t.csv", records)
    assert only(judged(path, floor=floor)).verdict == "NEITHER LEARNED THE TASK"
    assert only(judged(path)).verdict != "NEITHER LEARNED THE TASK"
    assert only(judged(path, floor=0.1)).verdict != "NEITHER LEARNED THE TASK"


@pytest.mark.parametrize("metric", ["perplexity", "eval_ppl"])
@pytest.mark.parametrize("size", [20.0, 2000.0])
def test_perplexities_are_compared_by_their_logarithm(tmp_path: Path, metric: str, size: float) -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"{arm},{seed},{size * factor * math.exp(0.002 * rng.standard_normal())}"
        for arm, factor in (("base", 1.0), ("new", 0.97)) for seed in range(6)
    ]  # fmt: skip
    row = only(judged(write(tmp_path, f"arm,seed,{metric}", rows)))
    assert row.verdict == "BETTER BY AT LEAST 1 %"
    assert comparison_of(row).difference == pytest.approx(-3.0, abs=0.3)
    assert comparison_of(row).data.baseline.mean == pytest.approx(size, rel=0.01)
    assert only(judged(write(tmp_path, f"arm,seed,{metric}", rows), smallest=5)).verdict.endswith(
        "BELOW YOUR THRESHOLD"
    )


def test_impossible_values_are_left_out_and_what_they_change_is_said(tmp_path: Path) -> None:
    records = draw({"base": 80.0, "new": 80.0}, 6)
    records[-1]["value"] = 104.2
    found = judged(write_long(tmp_path / "t.csv", records))
    assert [finding.check for finding in found.faults] == ["impossible values"]
    assert found.faults[0].sentence.endswith("It is left out of the analysis")
    assert comparison_of(only(found)).data.variant.n == 5
    assert comparison_of(only(found)).data.variant.mean < 82
    assert [cell.text for cell in found.left_out] == ["104.2"]
    (change,) = found.changes
    assert change.startswith("new s f1: without them ")
    assert "; with them +3.9" in change


@pytest.mark.parametrize("steps", [(), (500, 1000, 1500, 2000)])
@pytest.mark.parametrize("write_table", WRITERS)
def test_an_impossible_value_is_no_failed_run(
    tmp_path: Path, steps: tuple[int, ...], write_table: Callable[..., str]
) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=steps, num_seeds=6))
    records[-1]["value"] = 133.3
    found = judged(write_table(tmp_path / "t.csv", records))
    assert comparison_of(only(found)).data.failures.failed == (0, 0)
    assert "runs without a score" not in [finding.check for finding in found.findings]


def test_a_metric_that_is_mostly_impossible_is_not_compared(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{140 + seed / 7 + (arm == 'b')}" for arm in ("a", "b") for seed in range(6)]
    found = judged(write(tmp_path, "arm,seed,accuracy", rows))
    assert only(found).verdict == "NOT COMPARABLE (most values of accuracy are impossible)"
    rows = [f"{arm},{seed},{-seed}" for arm in ("a", "b") for seed in range(6)]
    assert only(judged(write(tmp_path, "arm,seed,ppl", rows))).verdict.startswith("NOT COMPARABLE (most values of ppl")


@pytest.mark.parametrize("name", ["n_test", "num_examples", "n", "N", "test_size", "n_eval", "support"])
@pytest.mark.parametrize("percent", [True, False])
def test_the_tables_own_number_of_examples_is_used(tmp_path: Path, name: str, percent: bool) -> None:
    recipe = Recipe(metrics=("accuracy",), num_examples=137, num_seeds=6, percent=percent)
    records = [record | {name: 137} for record in make_records(recipe)]
    path = write_long(tmp_path / "t.csv", records)
    assert judged(path).is_clean
    assert f"evaluation examples from '{name}'" in read_table(path).layout
    records[3]["value"] += 0.0031 * (100 if percent else 1)
    found = judged(write_long(tmp_path / "t.csv", records))
    assert [finding.check for finding in found.faults] == ["impossible values"]
    assert "accuracy is a multiple of 1/137; " in found.faults[0].sentence
    assert found.faults[0].data["num_examples"] == 137
    # What the user says goes before the table.
    other = judged(write_long(tmp_path / "t.csv", records), num_examples=872)
    assert {finding.data.get("num_examples") for finding in other.faults} == {872}


def test_numbers_of_examples_by_group_and_by_metric(tmp_path: Path) -> None:
    sizes = {"s": 137, "l": 211}
    records = [
        record | {"n_test": sizes[group]}
        for group in sizes
        for record in make_records(
            Recipe(metrics=("accuracy",), num_examples=sizes[group], groups=(group,), num_seeds=6, seed=len(group))
        )
    ]
    assert judged(write_long(tmp_path / "t.csv", records)).is_clean
    swapped = [record | {"n_test": 348 - record["n_test"]} for record in records]
    found = judged(write_long(tmp_path / "t.csv", swapped))
    assert {finding.data.get("num_examples") for finding in found.faults} == {137, 211}
    # Most values do not fit, so that n is the likelier mistake and nothing is left out.
    assert found.left_out == ()


def test_arms_with_other_numbers_of_examples_are_different_budgets(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), num_seeds=6))
    records = [record | {"n_test": 500 if record["arm"] == "cosine" else 1000} for record in records]
    found = judged(write_long(tmp_path / "t.csv", records))
    assert [finding.check for finding in found.faults] == ["different budgets"]
    assert "differ in n_test for f1: 'baseline' 1000, 'cosine' 500" in found.faults[0].sentence


def test_a_small_n_counts_something_else(tmp_path: Path) -> None:
    records = [record | {"n": 6} for record in make_records(Recipe(metrics=("accuracy",), num_seeds=6))]
    path = write_long(tmp_path / "t.csv", records)
    assert judged(path).is_clean
    assert "not used: 'n'" in read_table(path).layout


def test_a_mapped_number_of_examples_must_be_one(tmp_path: Path) -> None:
    path = write(tmp_path, "arm,seed,acc,size_of_set\n", ["a,1,0.5,100", "b,1,0.5,many"])
    with pytest.raises(Exception, match="'size_of_set' must hold a number of evaluation examples, not 'many'"):
        read_table(path, "examples=size_of_set")
