"""`attnlab judge` examines a table for people and for programs; faults are status 1, a wrong request is status 2."""

import json
import re
from pathlib import Path

import pytest

from attnlab.cli import main

from ..studies.integrity.result_tables import Recipe, make_records, write_long, write_wide


@pytest.fixture
def clean(tmp_path: Path) -> str:
    return write_wide(tmp_path / "clean.csv", make_records(Recipe(num_seeds=6, groups=("4l", "8l"))))


@pytest.fixture
def copied(tmp_path: Path) -> str:
    records = make_records(Recipe(metrics=("f1",)))
    for copy, source in ((-1, -2), (0, 1)):
        records[copy]["value"] = records[source]["value"]
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


def test_one_copied_cell_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = make_records(Recipe(metrics=("f1",)))
    records[-1]["value"] = records[-2]["value"]
    assert main(["judge", write_long(tmp_path / "t.csv", records)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "note repeated values 1 of 10 values repeat earlier ones to the last digit" in shown
    assert "One equal value may be a copied cell or a coincidence. " in shown


def test_json_has_findings_and_analyses(copied: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", copied, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["is_clean"] is False
    assert [finding["check"] for finding in record["findings"]] == ["repeated values"]
    assert record["analyses"][0]["comparisons"][0]["verdict"]
    assert record["read_as"]


def test_what_is_worth_having_can_be_said(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean, "--smallest", "25", "--json"]) == 0
    comparisons = json.loads(capsys.readouterr().out)["analyses"][0]["comparisons"]
    assert {comparison["smallest"] for comparison in comparisons} == {25.0}
    assert {comparison["verdict"] for comparison in comparisons} == {"NO MEANINGFUL DIFFERENCE"}


def test_the_baseline_can_be_said(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean, "--baseline", "cosine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == "cosine"


def test_mixed_units_are_printed_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_seeds=6))
    for record in records[6:]:
        record["value"] /= 100
    path = write_long(tmp_path / "t.csv", records)
    assert main(["judge", path]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "FAULT mixed units accuracy mixes units: 6 values of 'cosine' lie between 0 and 1, like fractions" in shown
    assert "NOT COMPARABLE (mixed units: 6 of 12 values look like fractions, the others like percentages)" in shown
    assert "--units accuracy=convert" in shown
    for units in ("convert", "accuracy=convert", "percent"):
        assert main(["judge", path, "--units", units]) == 0
        assert "NOT COMPARABLE" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("accuracy", "options", "words", "reason"),
    [
        (0.21, ["--floor", "0.2121"], "NEITHER LEARNED THE TASK", "a trivial strategy scores 0.2121"),
        (0.9995, [], "BOTH AT CEILING", "a harder task could tell them apart"),
    ],
)
def test_words_that_need_a_reason_have_one(
    tmp_path: Path, accuracy: float, options: list[str], words: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{arm},{seed},{accuracy - seed / 9000 + (arm == 'b') / 90000}" for arm in "ab" for seed in range(5)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,accuracy", *rows]), encoding="utf-8")
    assert main(["judge", str(path), *options]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert words in shown
    assert reason in shown


def test_a_curve_that_still_rises_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_wide(tmp_path / "t.csv", make_records(Recipe(steps=(500, 1000, 1500, 2000), num_seeds=6)))
    assert main(["judge", path]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "STILL TRAINING, " in shown
    assert re.search(r"in the last fifth of training '\w+' gained [\d.]+", shown)


def test_primary_metrics_can_be_named(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean, "--primary", "f1"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("(exploratory)") == 2
    assert "at 97.5 %" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv"], "cannot read 'nowhere.csv'"),
        (["TABLE", "--map", "arm=who"], "has no column 'who'"),
        (["TABLE", "--map", ""], "--map is empty; it takes PART=COLUMN"),
        (["TABLE", "--map", "columns=x{seed}"], "columns=x{seed} fits no column"),
        (["TABLE", "--map", "arm=arm,group=arm"], "--map gives the column 'arm' two parts"),
        (["TABLE", "--map", "arm=arm,columns={arm}"], "--map gives 'arm' twice: as a column, and in columns={arm}"),
        (["TABLE", "--map", "table=2"], "--map table=2: "),
        (["TABLE", "--map", "table=two"], "give the number of a table in the file"),
        (["TABLE", "--seeds", "0"], "--seeds must be 1 or more"),
        (["TABLE", "--spread", "sem"], "--spread has no 'sem'"),
        (["TABLE", "--map", "amr=arm"], "--map has no part 'amr', did you mean 'arm'?"),
        (["TABLE", "--examples", "0"], "--examples must be 1 or more"),
        (["TABLE", "--examples", "many"], "--examples takes a whole number, not 'many'"),
        (["TABLE", "--smallest", "nan"], "--smallest must be a number above 0"),
        (["TABLE", "--smallest", "few"], "--smallest takes a number, or METRIC=NUMBER separated by commas, not 'few'"),
        (["TABLE", "--smallest", "f2=1"], "--smallest names 'f2', which is not a metric of this table, did you mean"),
        (["TABLE", "--smallest", "f1="], "--smallest takes one value, or METRIC=VALUE separated by commas"),
        (["TABLE", "--floor", "inf"], "--floor must be a number, not inf"),
        (["TABLE", "--floor", "250"], "--floor 250 is beyond f1, which lies between 0 and 100 in this table"),
        (["TABLE", "--units", "percents"], "--units has no 'percents', did you mean 'percent'?"),
        (["TABLE", "--units", "em=percent"], "--units names 'em', which is not a metric of this table"),
        (["TABLE", "--primary", "em"], "--primary names 'em', which is not a metric of this table"),
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


def test_one_threshold_for_metrics_of_different_units_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_long(tmp_path / "t.csv", make_records(Recipe(metrics=("accuracy", "loss"), num_seeds=6)))
    assert main(["judge", path, "--smallest", "1"]) == 2
    assert "--smallest 1 cannot hold for both accuracy and loss, which have different units" in capsys.readouterr().err
    assert main(["judge", path, "--smallest", "accuracy=1,loss=0.01"]) == 0
    assert main(["judge", path, "--smallest", "1", "--primary", "accuracy"]) == 0


BETTER_SEEDS = "model,s1,s2,s3,s4,s5\nbase,1.02,1.03,1.01,1.02,1.04\nours,0.98,0.97,0.99,0.98,0.96\n"


@pytest.mark.parametrize(
    ("metric", "words", "is_assumed"),
    [("bpb", "BETTER BY AT LEAST", False), ("gap ↓", "BETTER BY AT LEAST", False), ("gap", "WORSE BY AT LEAST", True)],
)
def test_a_stated_direction_is_not_assumed(
    metric: str, words: str, is_assumed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(BETTER_SEEDS, encoding="utf-8")
    assert main(["judge", str(path), "--metric", metric]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert words in shown
    assert ("is assumed" in shown) == is_assumed
    # The difference is settled beyond the threshold.
    assert "power for a true difference" not in shown


def test_a_cell_that_is_no_number_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    path.write_text(BETTER_SEEDS.replace("1.03", "1.O3"), encoding="utf-8")
    assert main(["judge", str(path)]) == 2
    assert f"line 2 of '{path}': 's2' must hold numbers, not '1.O3'" in " ".join(capsys.readouterr().err.split())


def test_how_to_use_a_column_that_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    path.write_text("model,seed,lr,acc\na,1,0.1,70\na,2,0.1,71\nb,1,0.1,72\nb,2,0.1,73\n", encoding="utf-8")
    main(["judge", str(path), "--seeds", "5"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "not used: 'lr'" in shown
    assert "To use a column that is not used, give it a part in this line: value=COLUMN+…" in shown
    assert "--seeds 5 not used, since the table has the score of each seed" in shown


def test_a_reason_that_all_comparisons_share_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("model,n_seeds,MNLI,RTE\nbase,5,80.1,70.1\na,5,80.5,71.2\nb,5,81.1,70.9\n", encoding="utf-8")
    assert main(["judge", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "All 4 comparisons with 'base': NOT COMPARABLE (the SD over seeds is not given)." in shown
    assert shown.count("NOT COMPARABLE") == 1
