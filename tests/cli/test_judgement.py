"""The judgement of a table as it is printed: intervals with their levels, numbers of seeds, and what would change."""

from pathlib import Path

import pytest

from attnlab.cli import main

from ..studies.integrity.result_tables import Recipe, make_records, write_long, write_wide


@pytest.fixture
def clean(tmp_path: Path) -> str:
    return write_wide(tmp_path / "clean.csv", make_records(Recipe(num_seeds=6, groups=("4l", "8l"))))


def test_one_arm_is_said_to_be_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_long(tmp_path / "one.csv", make_records(Recipe(arms=("baseline",))))
    assert main(["judge", path]) == 0
    assert "There is only one arm, so nothing is compared." in capsys.readouterr().out


def test_the_verdict_interval_and_its_level_are_shown(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", clean]) == 0
    shown = capsys.readouterr().out
    assert "verdict interval" in shown
    assert "at 98.75 %" in shown  # four comparisons of two groups and two metrics
    assert "95 %" not in shown
    text = " ".join(shown.split())
    assert (
        "The 4 comparisons of em, f1 share one false-positive rate of 5 %: the level of each interval is adjusted"
        in text
    )
    assert "Every metric is primary unless --primary names some" in text
    assert "if models are pretrained, each seed has its own pretraining" in text


def test_there_is_one_number_of_seeds_and_it_is_explained(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["judge", clean])
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if line.startswith("cosine")]
    assert any("INCONCLUSIVE (about " in row and row.count("more seeds") == 1 for row in rows)
    assert "seeds needed" not in shown
    assert "'About N more seeds' is the number per arm" in " ".join(shown.split())


def test_impossible_values_are_left_out_and_what_changes_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_seeds=6, decimals=2))
    records[-1]["value"] = 104.2
    assert main(["judge", write_long(tmp_path / "t.csv", records, 2)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "accuracy lies between 0 and 100; 104.20 (line 13, value) does not fit. It is left out of the analysis."
        in shown
    )
    assert "What the impossible values would change cosine small accuracy: without them " in shown


def test_columns_that_are_no_arms_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("seed,softmax,ours (full),dropout\n0,80,82,81\n1,81,83,82\n", encoding="utf-8")
    main(["judge", str(path)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "arms softmax, ours (full)" in shown
    assert "Columns of numbers that are not read as arms: 'dropout'." in shown
    main(["judge", str(path), "--map", "columns={arm},value=softmax+ours (full)+dropout"])
    assert "arms softmax, ours (full), dropout" in capsys.readouterr().out


def test_what_has_no_baseline_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("seed,softmax_a,ours_a,ours_b\n0,1.1,2.2,3\n1,1,2,3.1\n", encoding="utf-8")
    main(["judge", str(path)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Not compared, since 'softmax' has no value of the same group and metric: ours b value." in shown


def test_perplexities_as_means_are_said_to_be_compared_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,ppl\nbase,24.8 ± 0.2\nours,23.5 ± 0.1\n", encoding="utf-8")
    main(["judge", str(path), "--seeds", "5"])
    assert "are compared as they are and not by their logarithms" in " ".join(capsys.readouterr().out.split())


def write_runs(tmp_path: Path, *rows: str) -> str:
    path = tmp_path / "accuracy.csv"
    path.write_text("\n".join(["model,s1,s2,s3,s4,s5,s6,s7,s8", *rows]), encoding="utf-8")
    return str(path)


BASELINE_ROW = "base,82.01,81.62,82.33,81.94,82.15,82.26,81.87,82.08"


def test_one_p_is_printed_and_the_test_that_decides_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["judge", write_runs(tmp_path, BASELINE_ROW, "ours,83.11,82.72,83.43,82.84,83.05,82.96,82.27,81.98")])
    shown = capsys.readouterr().out
    header = next(line for line in shown.splitlines() if line.startswith("arm "))
    assert header.split("interval")[1].split() == ["p", "adjusted", "p", "verdict"]
    text = " ".join(shown.split())
    assert "Seeds are compared unpaired (Welch t, widened)" in text
    assert "Interval and p come from the test in brackets, and the verdict rests on it alone." in text


def test_a_rank_test_beside_the_t_test_is_said_to_decide_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["judge", write_runs(tmp_path, BASELINE_ROW, "ours,83.11,82.72,83.43,82.84,83.05,82.96,83.27,nan")])
    text = " ".join(capsys.readouterr().out.split())
    assert "(a rank test) and of equal failure rates (Fisher's test) decide nothing here" in text
    assert "(ranks)" not in text


def test_a_p_of_ranks_is_marked_and_the_verdict_that_rests_on_it_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["judge", write_runs(tmp_path, BASELINE_ROW, "ours,81.61,81.52,81.93,82.04,80.95,nan,nan,nan")])
    text = " ".join(capsys.readouterr().out.split())
    assert "(ranks)" in text
    assert "ours accuracy: p is of a rank test that counts each failed run as the worst result" in text
    assert "The verdict rests on this rank test." in text
