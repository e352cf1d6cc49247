"""Reported means and SDs that differ from the recorded values are found."""

from pathlib import Path

import pytest

from tests.studies.integrity.result_tables import (
    WRITERS,
    Recipe,
    Record,
    Write,
    judge_file,
    list_faults,
    make_records,
    select,
    write_long,
)


def write_summary(path: Path, records: list[Record], shift: float = 0.0, is_wide: bool = False) -> str:
    lines: list[str] = []
    figures = {}
    for arm in ("baseline", "cosine"):
        for metric in ("em", "f1"):
            values = [record["value"] for record in select(records, arm=arm, metric=metric)]
            mean = sum(values) / len(values)
            sd = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
            figures[arm, metric] = f"{mean + shift * (arm == 'cosine'):.2f}", f"{sd:.2f}"
    if is_wide:
        names = [f"{arm}_small_{metric}_{what}" for arm, metric in figures for what in ("mean", "std")]
        lines = [",".join(names), ",".join(text for pair in figures.values() for text in pair)]
    else:
        lines = [
            "arm,size,metric,mean,sd",
            *(f"{arm},small,{metric},{mean},{sd}" for (arm, metric), (mean, sd) in figures.items()),
        ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("write", WRITERS)
def test_a_summary_that_is_not_the_tables(tmp_path: Path, write: Write, is_wide: bool) -> None:
    records = make_records(Recipe())
    path = write(tmp_path / "t.csv", records)
    right = write_summary(tmp_path / "right.csv", records, is_wide=is_wide)
    (finding,) = judge_file(path, summary=right).findings
    assert not finding.is_fault
    assert finding.sentence.startswith("all 8 figures agree with the recorded values, of 8 in ")
    wrong = write_summary(tmp_path / "wrong.csv", records, 0.8, is_wide)
    found = judge_file(path, summary=wrong)
    assert list_faults(found) == ["summary differs"]
    assert found.findings[0].sentence.startswith(f"2 of 8 figures of {wrong} differ from the recorded values: cosine")


@pytest.mark.parametrize("factor", [100, 1])
def test_a_summary_may_have_another_unit(tmp_path: Path, factor: int) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_seeds=6, percent=False))
    lines = ["arm,metric,mean"]
    for arm in ("baseline", "cosine"):
        values = [record["value"] for record in records if record["arm"] == arm]
        lines.append(f"{arm},accuracy,{factor * sum(values) / 6:.4f}")
    summary = tmp_path / "summary.csv"
    summary.write_text("\n".join(lines), encoding="utf-8")
    records = [{name: value for name, value in record.items() if name != "size"} for record in records]
    found = judge_file(write_long(tmp_path / "t.csv", records), summary=str(summary))
    assert found.is_clean
    assert [finding.check for finding in found.findings] == ["summary agrees", *["summary differs"] * (factor > 1)]


@pytest.mark.parametrize("header", ["arm,accuracy,sd", "arm,accuracy_mean,accuracy_sd", "arm,mean,sd"])
@pytest.mark.parametrize("mean", ["81.50", "81.60"])
def test_a_metric_beside_its_sd_is_a_mean(header: str, mean: str, tmp_path: Path) -> None:
    table, summary = tmp_path / "seeds.csv", tmp_path / "summary.csv"
    table.write_text("arm,seed,accuracy\nbase,1,81.0\nbase,2,82.0\nours,1,83.0\nours,2,84.0\n", encoding="utf-8")
    summary.write_text(f"{header}\nbase,{mean},0.71\nours,83.50,0.71\n", encoding="utf-8")
    findings = [one for one in judge_file(str(table), summary=str(summary)).findings if "summary" in one.check]
    sentences = " ".join(one.sentence for one in findings)
    assert ("all 4 figures agree" in sentences) == (mean == "81.50"), sentences
    assert ("1 of 4 figures" in sentences) == (mean != "81.50"), sentences
