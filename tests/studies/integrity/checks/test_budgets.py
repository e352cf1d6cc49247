"""Arms with different budgets are found."""

from pathlib import Path

import pytest

from tests.studies.integrity.result_tables import (
    STEPS,
    Recipe,
    judge_file,
    list_faults,
    make_records,
    write_long,
)


def test_arms_with_other_last_steps(tmp_path: Path) -> None:
    records = make_records(Recipe(steps=STEPS))
    records = [record for record in records if not (record["arm"] == "baseline" and record["step"] > 1500)]
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert "different budgets" in list_faults(found)
    assert "differ in last step: 'baseline' 1500, 'cosine' 2000" in found.findings[0].sentence


@pytest.mark.parametrize("name", ["tokens", "epochs", "batch_size", "train steps"])
def test_arms_with_other_budgets(tmp_path: Path, name: str) -> None:
    records = [record | {name: 1000 if record["arm"] == "baseline" else 2000} for record in make_records(Recipe())]
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert list_faults(found) == ["different budgets"]
    assert f"differ in {name}: 'baseline' 1000, 'cosine' 2000" in found.findings[0].sentence
    assert judge_file(write_long(tmp_path / "t.csv", [record | {name: 1000} for record in records])).is_clean


def test_arms_with_other_numbers_of_examples_are_different_budgets(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), num_seeds=6))
    records = [record | {"n_test": 500 if record["arm"] == "cosine" else 1000} for record in records]
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert [finding.check for finding in found.faults] == ["different budgets"]
    assert "differ in n_test for f1: 'baseline' 1000, 'cosine' 500" in found.faults[0].sentence
