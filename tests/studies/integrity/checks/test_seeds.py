"""Runs without a score are noted, and a spread that comes from one seed is found."""

from pathlib import Path

import pytest

from tests.studies.integrity.result_tables import (
    WRITERS,
    Recipe,
    Write,
    draw_records,
    get_only_row,
    judge_file,
    list_faults,
    make_records,
    select,
    write_long,
    write_rows,
)


@pytest.mark.parametrize("write", WRITERS)
def test_a_spread_that_rests_on_one_seed(tmp_path: Path, write: Write) -> None:
    records = make_records(Recipe(metrics=("f1",), num_seeds=5))
    for record in select(records, arm="cosine"):
        record["value"] = 70 + 0.11 * record["seed"] if record["seed"] != 3 else 48.123
    found = judge_file(write(tmp_path / "t.csv", records))
    assert list_faults(found) == ["outlying seed"]
    assert "seed 3 is 48.123, far from the other 4 seeds" in found.findings[0].sentence


@pytest.mark.parametrize("word", ["nan", "", "diverged", "inf"])
@pytest.mark.parametrize(
    ("num_failed", "verdict"),
    [(5, "NOT COMPARABLE (0 of 10 runs of the baseline and 5 of 10 of the variant failed)"), (3, "BETTER")],
)
def test_failed_runs_get_the_words_of_failures(tmp_path: Path, word: str, num_failed: int, verdict: str) -> None:
    rows = []
    for record in draw_records({"base": 60.0, "new": 65.0}, 10):
        is_failed = record["arm"] == "new" and record["seed"] < num_failed
        rows.append(f"{record['arm']},{record['seed']},{word if is_failed else record['value']}")
    found = judge_file(write_rows(tmp_path, "arm,seed,f1", rows))
    assert get_only_row(found).verdict.startswith(verdict)
    assert get_only_row(found).verdict != "BETTER BY AT LEAST 1"
    (note,) = [finding for finding in found.findings if finding.check == "runs without a score"]
    assert not note.is_fault
    assert note.data["num_missing"] == num_failed


def test_a_run_that_ends_early_counts_as_failed(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=(500, 1000, 1500, 2000), num_seeds=10))
    records = [r for r in records if not (r["arm"] == "cosine" and r["seed"] < 6 and r["step"] > 1000)]
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert get_only_row(found).verdict.startswith(
        "NOT COMPARABLE (0 of 10 runs of the baseline and 6 of 10 of the variant"
    )
    (note,) = [finding for finding in found.findings if finding.check == "runs without a score"]
    assert "(ends at an earlier step)" in note.sentence
