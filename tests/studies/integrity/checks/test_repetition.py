"""Steps without new values, and runs with the values of another run, are found."""

from pathlib import Path

import pytest

from tests.studies.integrity.result_tables import (
    STEPS,
    WRITERS,
    Recipe,
    Write,
    judge_file,
    list_faults,
    make_records,
    select,
    write_long,
)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("decimals", [None, 4])
def test_a_last_step_without_new_values(tmp_path: Path, write: Write, decimals: int | None) -> None:
    records = make_records(Recipe(steps=STEPS, decimals=decimals))
    before = {(one["arm"], one["seed"], one["metric"]): one["value"] for one in select(records, step=1500)}
    for record in select(records, step=2000):
        record["value"] = before[record["arm"], record["seed"], record["metric"]]
    # Two seeds have each other's values besides.
    for record in select(records, step=2000, arm="cosine", seed=2):
        record["value"] = before["cosine", 3, record["metric"]]
    found = judge_file(write(tmp_path / "t.csv", records, decimals))
    assert list_faults(found) == ["repeated values"]
    (finding,) = found.findings
    assert finding.sentence.startswith(
        "Step 2000 holds no new value: of its 20 cells, 18 repeat the same run's step 1500"
    )
    assert finding.data["counts"]["another seed's value"] == 2
    assert [analysis.step for analysis in found.analyses] == [2000.0, 1500.0]


@pytest.mark.parametrize("write", WRITERS)
def test_one_value_of_another_seed_is_a_note(tmp_path: Path, write: Write) -> None:
    records = make_records(Recipe(metrics=("f1", "loss")))
    f1 = select(records, arm="cosine", metric="f1")
    f1[4]["value"] = f1[1]["value"]
    found = judge_file(write(tmp_path / "t.csv", records))
    assert list_faults(found) == []
    assert found.findings[0].check == "repeated values"
    assert (
        "1 repeats another seed's value (cosine small seed 4 has 1 of cosine small seed 1)"
        in found.findings[0].sentence
    )


@pytest.mark.parametrize("decimals", [None, 2, 4])
def test_a_run_that_is_another_arms(tmp_path: Path, decimals: int | None) -> None:
    records = make_records(Recipe(steps=STEPS, decimals=decimals))
    for record in select(records, arm="cosine"):
        (same,) = select(records, arm="baseline", **{name: record[name] for name in ("seed", "step", "metric")})
        record["value"] = same["value"]
    found = judge_file(write_long(tmp_path / "t.csv", records, decimals))
    assert list_faults(found) == ["repeated values"]
    assert "another arm's value" in found.findings[0].sentence


def test_a_run_that_is_another_seeds_in_coarse_values(tmp_path: Path) -> None:
    records = make_records(Recipe(steps=STEPS, decimals=2, num_seeds=6))
    for record in select(records, arm="cosine", seed=5):
        (same,) = select(records, arm="cosine", seed=0, step=record["step"], metric=record["metric"])
        record["value"] = same["value"]
    found = judge_file(write_long(tmp_path / "t.csv", records, 2))
    assert "repeated values" in list_faults(found)
    assert "cosine small seed 5 has 8 of cosine small seed 0" in found.findings[0].sentence
