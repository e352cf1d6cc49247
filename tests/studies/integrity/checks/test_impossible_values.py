"""Values beyond a metric's limits, and accuracies that are no multiple of 1/n, are found and left out."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import IntegrityKind, read_table
from tests.studies.integrity.result_tables import (
    WRITERS,
    Recipe,
    Write,
    draw_records,
    get_comparison,
    get_only_row,
    judge_file,
    list_faults,
    make_records,
    select,
    write_long,
    write_rows,
    write_wide,
)


@pytest.mark.parametrize("percent", [True, False])
@pytest.mark.parametrize("asked", [None, 872])
def test_an_accuracy_that_is_no_share(tmp_path: Path, percent: bool, asked: int | None) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_examples=872, percent=percent, num_seeds=6))
    records[7]["value"] += 0.0003 * (100 if percent else 1)
    found = judge_file(write_long(tmp_path / "t.csv", records), num_examples=asked)
    assert list_faults(found) == ["impossible values"]
    sentence = found.findings[0].sentence
    assert "accuracy is a multiple of 1/872" in sentence
    assert ("guessed: the others are, as on SST-2's validation set" in sentence) == (asked is None)
    assert found.findings[0].places == ("line 9, value",)


def test_tasks_have_evaluation_sets_of_their_own(tmp_path: Path) -> None:
    sizes = {"RTE": 277, "SST-2": 872}
    rows = []
    for at, arm in enumerate("ab"):
        for seed in range(6):
            shares = [round(n * (0.7 + at * 0.02 + seed / 90)) / n for n in sizes.values()]
            rows.append(",".join([arm, str(seed), *(f"{100 * share:.4f}" for share in shares)]))
    assert judge_file(write_rows(tmp_path, "arm,seed,RTE acc,SST-2 acc", rows)).is_clean
    rows[3] = ",".join([*rows[3].split(",")[:2], "75.1234", rows[3].split(",")[3]])
    found = judge_file(write_rows(tmp_path, "arm,seed,RTE acc,SST-2 acc", rows))
    (sentence,) = [finding.sentence for finding in found.faults]
    assert "acc is a multiple of 1/277 (guessed: the others are, as on RTE's validation set); 75.1234" in sentence


def test_rounded_shares_are_possible(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("accuracy",), num_examples=277, decimals=3, percent=False))
    assert judge_file(write_long(tmp_path / "t.csv", records, 3), num_examples=277).is_clean
    records[0]["value"] = 0.602
    found = judge_file(write_long(tmp_path / "t.csv", records, 3), num_examples=277)
    assert ("impossible values" in list_faults(found)) == (round(round(0.602 * 277) / 277, 3) != 0.602)


@pytest.mark.parametrize(
    ("metric", "value", "message"),
    [
        ("accuracy", 103.5, "accuracy lies between 0 and 100"),
        ("f1", -0.5, "f1 lies between 0 and"),
        ("perplexity", 0.7, "perplexity: a perplexity is at least 1"),
        ("perplexity", 0.0, "perplexity: a perplexity is at least 1"),
        ("mcc", -1.2, "mcc lies between -100 and 100"),
    ],
)
def test_values_beyond_the_metric(tmp_path: Path, metric: str, value: float, message: str) -> None:
    path = tmp_path / "t.csv"
    usual = {"accuracy": 70.0, "f1": 0.7, "perplexity": 20.0, "mcc": 55.0}[metric]
    rows = [f"{arm},{seed},{usual + seed * usual / 73 + (arm == 'b') / 7}" for arm in "ab" for seed in range(5)]
    extreme = value * 100 if metric == "mcc" else value
    path.write_text("\n".join([f"arm,seed,{metric}", *rows, f"b,9,{extreme}"]), encoding="utf-8")
    found = [finding.sentence for finding in judge_file(str(path)).faults if finding.check == "impossible values"]
    assert len(found) == 1
    assert message in found[0]


def test_a_perplexity_of_zero_is_one_finding_and_cannot_be_compared(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{20 + seed / 7 + (arm == 'b') / 3}" for arm in "ab" for seed in range(5)]
    found = judge_file(write_rows(tmp_path, "arm,seed,perplexity", [*rows, "b,9,0"]))
    assert list_faults(found) == ["impossible values"]
    (change,) = found.changes
    assert change.endswith("with them NOT COMPARABLE (a perplexity is at least 1, and one of 'b' is 0)")


def test_an_f1_below_its_exact_match(tmp_path: Path) -> None:
    records = make_records(Recipe())
    (wrong,) = select(records, arm="cosine", seed=2, metric="f1")
    wrong["value"] = select(records, arm="cosine", seed=2, metric="em")[0]["value"] - 3.3
    assert "impossible values" in list_faults(judge_file(write_wide(tmp_path / "t.csv", records)))


def test_impossible_values_are_left_out_and_what_they_change_is_said(tmp_path: Path) -> None:
    records = draw_records({"base": 80.0, "new": 80.0}, 6)
    records[-1]["value"] = 104.2
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert [finding.check for finding in found.faults] == ["impossible values"]
    assert found.faults[0].sentence.endswith("It is left out of the analysis")
    assert get_comparison(get_only_row(found)).data.variant.n == 5
    assert get_comparison(get_only_row(found)).data.variant.mean < 82
    assert [cell.text for cell in found.left_out] == ["104.2"]
    (change,) = found.changes
    assert change.startswith("new s f1: without them ")
    assert "; with them +3.9" in change


@pytest.mark.parametrize("steps", [(), (500, 1000, 1500, 2000)])
@pytest.mark.parametrize("write_table", WRITERS)
def test_an_impossible_value_is_no_failed_run(tmp_path: Path, steps: tuple[int, ...], write_table: Write) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=steps, num_seeds=6))
    records[-1]["value"] = 133.3
    found = judge_file(write_table(tmp_path / "t.csv", records))
    assert get_comparison(get_only_row(found)).data.failures.failed == (0, 0)
    assert "runs without a score" not in [finding.check for finding in found.findings]


def test_a_metric_that_is_mostly_impossible_is_not_compared(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{140 + seed / 7 + (arm == 'b')}" for arm in ("a", "b") for seed in range(6)]
    found = judge_file(write_rows(tmp_path, "arm,seed,accuracy", rows))
    assert get_only_row(found).verdict == "NOT COMPARABLE (most values of accuracy are impossible)"
    rows = [f"{arm},{seed},{-seed}" for arm in ("a", "b") for seed in range(6)]
    assert get_only_row(judge_file(write_rows(tmp_path, "arm,seed,ppl", rows))).verdict.startswith(
        "NOT COMPARABLE (most values of ppl"
    )


@pytest.mark.parametrize("name", ["n_test", "num_examples", "n", "N", "test_size", "n_eval", "support"])
@pytest.mark.parametrize("percent", [True, False])
def test_the_tables_own_number_of_examples_is_used(tmp_path: Path, name: str, percent: bool) -> None:
    recipe = Recipe(metrics=("accuracy",), num_examples=137, num_seeds=6, percent=percent)
    records = [record | {name: 137} for record in make_records(recipe)]
    path = write_long(tmp_path / "t.csv", records)
    assert judge_file(path).is_clean
    assert f"evaluation examples from '{name}'" in read_table(path).layout
    records[3]["value"] += 0.0031 * (100 if percent else 1)
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert [finding.check for finding in found.faults] == ["impossible values"]
    assert "accuracy is a multiple of 1/137; " in found.faults[0].sentence
    assert found.faults[0].data["num_examples"] == 137
    # What the user says goes before the table.
    other = judge_file(write_long(tmp_path / "t.csv", records), num_examples=872)
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
    assert judge_file(write_long(tmp_path / "t.csv", records)).is_clean
    swapped = [record | {"n_test": 348 - record["n_test"]} for record in records]
    found = judge_file(write_long(tmp_path / "t.csv", swapped))
    assert {finding.data.get("num_examples") for finding in found.faults} == {137, 211}
    # Most values do not fit, so that n is the likelier mistake and nothing is left out.
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("mean", "num_seeds", "is_possible"),
    [
        ("82.55", 3, False), ("82.57", 3, True), ("82.53", 3, True), ("83.27", 1, False), ("83.2", 1, True),
        ("82.6", 3, True), ("82.55", 10, True), ("82.55", "", True),
    ],
)  # fmt: skip
def test_a_mean_that_no_number_of_right_answers_gives(
    tmp_path: Path, mean: str, num_seeds: int | str, is_possible: bool
) -> None:
    rows = ["base,82.1,0.4,5,1000", f"ours,{mean},0.3,{num_seeds},1000"]
    found = judge_file(write_rows(tmp_path, "method,accuracy_mean,accuracy_std,n_seeds,n_test", rows))
    wrong = [it.sentence for it in found.faults if it.kind == IntegrityKind.IMPOSSIBLE_VALUES]
    assert bool(wrong) != is_possible
    assert is_possible or f"{mean} (line 3, accuracy_mean) does not fit (k = {num_seeds}, n = 1000)" in wrong[0]


def test_a_mean_is_not_examined_without_a_number_of_examples(tmp_path: Path) -> None:
    rows = ["base,82.1,0.4,5", "ours,82.55,0.3,3"]
    found = judge_file(write_rows(tmp_path, "method,accuracy_mean,accuracy_std,n_seeds", rows))
    assert not [it for it in found.faults if it.kind == IntegrityKind.IMPOSSIBLE_VALUES]
