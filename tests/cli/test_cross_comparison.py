"""`attnlab compare A B …` says what makes results comparable, and gives the verdicts."""

import json
from pathlib import Path

import pytest

from attnlab.cli import main

from ..studies.folders import BETTER, DOT, write_folder

LISTS = ["base=0.50,0.52,0.51,0.49,0.53", "new=0.60,0.63,0.60,0.59,0.64"]


def test_lists_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *LISTS, "--metric", "accuracy", "--smallest", "0.02"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "base: a list of numbers, 5 seeds new: a list of numbers, 5 seeds Are they comparable?" in shown
    assert "- base does not record its seeds, data, code, settings" in shown
    assert "BETTER BY AT LEAST 0.02" in shown
    assert "Seeds are compared unpaired" in shown
    assert "--paired compares them as pairs if they do" in shown
    assert main(["compare", *LISTS, "--metric", "accuracy", "--smallest", "0.02", "--paired"]) == 0
    assert "as pairs of the same seed" in " ".join(capsys.readouterr().out.split())


def test_two_studies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(write_folder(tmp_path / name, {"dot": DOT, "better": BETTER})) for name in ("first", "second")]
    assert main(["compare", *folders, "--arm", "dot", "--arm", "better"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "first: a study, arm dot, 5 seeds second: a study, arm better, 5 seeds" in shown
    assert "- settings: start.mechanism dot | softmax against cosine | softmax" in shown
    assert "any of these differences may be its cause" in shown
    assert "Seeds are compared as pairs of the same seed" in shown
    assert main(["compare", *folders, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["is_paired"]
    assert "settings" in record["same"]


def test_files_are_said_to_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("label,prediction\n" + "1,1\n0,1\n" * 10, encoding="utf-8")
    assert main(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 1  # the same numbers are a fault
    shown = " ".join(capsys.readouterr().out.split())
    assert "a.csv was read as: prediction from 'prediction'; label from 'label'." in shown
    assert "Predictions: of 20 examples, only a.csv is right on 0 and only b.csv on 0; p = 1" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*LISTS, "--phase", "x"], "--phase is for one study; omit it here"),
        (["study", "--paired"], "--paired is for two or more results; omit it here"),
        ([*LISTS, "--smallest", "x"], "--smallest takes a number"),
        ([LISTS[0], "nowhere.csv"], "cannot read 'nowhere.csv'"),
    ],
)
def test_wrong_requests_are_one_message_and_status_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_one_file_is_for_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("arm,acc\na,1\n", encoding="utf-8")
    assert main(["compare", str(tmp_path / "a.csv")]) == 2
    assert f"attnlab judge {tmp_path / 'a.csv'} examines one table" in capsys.readouterr().err


def test_means_with_their_number_of_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    files[0].write_text("method,accuracy\nbase,82.0 ± 0.5\n", encoding="utf-8")
    files[1].write_text("method,acc\nours,84.0 ± 0.5\n", encoding="utf-8")
    words = ["compare", *map(str, files), "--seeds", "5"]
    assert main([*words, "--metric", "accuracy"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "a.csv: a file of results, arm base, means over 5 seeds" in shown
    assert "82 ± 0.5 84 ± 0.5" in shown
    assert main([*words, "--spread", "se"]) == 0
    assert "82 ± 1.12 84 ± 1.12" in " ".join(capsys.readouterr().out.split())


def test_one_list_needs_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", LISTS[0]]) == 2
    assert "give a second list" in capsys.readouterr().err


def test_the_size_of_the_evaluation_set_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    lists = ["a=0.5,0.52,0.51,0.49,0.53", "b=0.6,0.63,0.6,0.5912,0.64"]
    assert main(["compare", *lists, "--metric", "accuracy", "--examples", "100"]) == 1
    assert "accuracy is a multiple of 1/100; 0.5912 (b, number 4)" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", *lists, "--examples", "0"]) == 2
    assert "--examples must be 1 or more, not 0" in capsys.readouterr().err


def test_every_copied_arm_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    scores, other = "70.68,72.11,71.61,74.96", "71.02,72.53,70.33,74.01"
    assert main(["compare", *(f"{name}={scores}" for name in "abcdef"), f"g={other}", "--metric", "f1"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "all arms with such values: b, c, d, e, f)" in shown
    assert "The same: every score of a and b and c and d and e and f, so these may be copies" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["base=71.2"], "'base=71.2' is the score of one seed; give one for each seed, such as base=71.2,…"),
        (["base=71.2", "ours=72.0,73.0"], "'base=71.2' is the score of one seed"),
        (["base="], "'base=' has no scores; give one for each seed, such as base=0.81,0.82,0.83"),
        ([LISTS[0], "ours="], "'ours=' has no scores"),
    ],
)
def test_a_list_that_is_too_short_says_what_is_missing(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
