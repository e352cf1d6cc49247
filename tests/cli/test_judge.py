"""`attnlab judge` examines a table for people and for programs; faults are status 1, a wrong request is status 2."""

import json
from pathlib import Path

import pytest

from attnlab.cli import main

from ..studies.integrity.tables import Recipe, make_records, write_long, write_wide


@pytest.fixture
def clean(tmp_path: Path) -> str:
    return write_wide(tmp_path / "clean.csv", make_records(Recipe(num_seeds=6, groups=("4l", "8l"))))


@pytest.fixture
def copied(tmp_path: Path) -> str:
    records = make_records(Recipe(metrics=("f1",)))
    records[-1]["value"] = records[-2]["value"]
    return write_long(tmp_path / "copied.csv", records)


def test_a_clean_table_is_status_0(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean]) == 0
    shown = capsys.readouterr().out
    assert "columns {arm}_{group}_{metric}_{seed}" in shown
    assert "baseline 'baseline'" in shown
    assert "Analysis of the table" in shown
    assert shown.endswith("No fault found.\n")


def test_a_fault_is_status_1(copied: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", copied]) == 1
    shown = capsys.readouterr().out
    assert "FAULT  repeated values" in shown
    assert "cosine small seed 4 has 1 of cosine small seed 3" in " ".join(shown.split())
    assert shown.endswith("1 fault found.\n")


def test_json_has_findings_and_analyses(copied: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", copied, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["is_clean"] is False
    assert [finding["check"] for finding in record["findings"]] == ["repeated values"]
    assert record["analyses"][0]["comparisons"][0]["verdict"]
    assert record["read_as"]


def test_what_is_worth_having_can_be_said(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean, "--smallest", "30", "--json"]) == 0
    comparisons = json.loads(capsys.readouterr().out)["analyses"][0]["comparisons"]
    assert {comparison["smallest"] for comparison in comparisons} == {30.0}
    assert {comparison["verdict"] for comparison in comparisons} == {"NO MEANINGFUL DIFFERENCE"}


def test_the_baseline_can_be_said(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean, "--baseline", "cosine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == "cosine"


def test_one_arm_is_said_to_be_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_long(tmp_path / "one.csv", make_records(Recipe(arms=("baseline",))))
    assert main(["judge", path]) == 0
    assert "One arm alone: nothing is compared." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv"], "cannot read 'nowhere.csv'"),
        (["TABLE", "--map", "arm=who"], "has no column 'who'"),
        (["TABLE", "--map", "amr=arm"], "--map knows no part 'amr', did you mean 'arm'?"),
        (["TABLE", "--examples", "0"], "--examples takes a number from 1 on"),
        (["TABLE", "--examples", "many"], "Invalid value for '--examples'"),
        (["TABLE", "--smallest", "nan"], "--smallest takes a number above 0"),
        (["TABLE", "--baseline", "cosin"], "no arm is named 'cosin', did you mean 'cosine'?"),
        (["TABLE", "--summary", "nowhere.csv"], "cannot read 'nowhere.csv'"),
        (["TABLE", "--summary", "TABLE"], "has no column of means or SDs"),
        ([], "For example: attnlab judge results.csv"),
    ],
)
def test_wrong_requests_are_one_message_and_status_2(
    words: list[str], message: str, copied: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", *(copied if word == "TABLE" else word for word in words)]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
