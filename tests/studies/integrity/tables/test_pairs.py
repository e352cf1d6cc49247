"""Each group and metric is compared at its own last step, and the gain of the last fifth of training is measured."""

from pathlib import Path

import pytest

from attnlab.studies.integrity.tables.pairs import measure_late_gain
from attnlab.studies.integrity.tables.table import Cell
from tests.studies.integrity.result_tables import (
    Recipe,
    get_comparison,
    get_only_row,
    judge_file,
    make_records,
    write_long,
    write_rows,
)


def test_groups_and_metrics_are_compared_at_their_own_last_step(tmp_path: Path) -> None:
    records = make_records(Recipe(groups=("s", "l"), steps=(500, 1000, 1500, 2000), num_seeds=6))
    records = [r for r in records if r["size"] == "l" or r["step"] <= 1500]
    records = [r for r in records if r["metric"] == "f1" or r["step"] <= 1000]
    (analysis,) = judge_file(write_long(tmp_path / "t.csv", records)).analyses
    steps = {(row.group, row.metric): row.step for row in analysis.rows}
    assert steps == {("s", "em"): 1000, ("l", "em"): 1000, ("s", "f1"): 1500, ("l", "f1"): 2000}
    assert {get_comparison(row).data.num_seeds for row in analysis.rows} == {6}
    assert analysis.title == "the last step of each comparison"


def test_a_best_step_for_each_run_is_no_curve(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{3 + seed},{60 + seed / 7 + (arm == 'b'):.3f}" for arm in ("a", "b") for seed in range(6)]
    row = get_only_row(judge_file(write_rows(tmp_path, "arm,seed,epoch,f1", rows)))
    assert get_comparison(row).data.num_seeds == 6
    assert row.step is None


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
