"""A column of spreads belongs to the column of means that its name fits, and is never a metric beside it."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import read_table
from tests.studies.integrity.result_tables import judge_file, write_text


@pytest.mark.parametrize(
    ("mean", "spread"),
    [
        ("perplexity", "ppl_std"),
        ("accuracy", "acc std"),
        ("Accuracy (%)", "acc_std"),
        ("F1 score", "f1_std"),
        ("accuracy (higher is better)", "accuracy_std"),
        ("ppl (lower is better)", "ppl_std"),
        ("acc_mean", "accuracy_std"),
        ("test accuracy", "test std"),
        ("exact match", "em_sd"),
        ("accuracy", "std_acc"),
        ("acc", "Std. Dev."),
    ],
)
def test_names_in_other_words(mean: str, spread: str, tmp_path: Path) -> None:
    path = write_text(tmp_path, f"model,{mean},{spread},n_seeds\nbase,82.1,0.4,5\nours,83.0,0.3,5\n")
    read = read_table(path)
    assert [(cell.value, cell.sd, cell.num_seeds) for cell in read.cells] == [(82.1, 0.4, 5), (83.0, 0.3, 5)]
    assert judge_file(path).is_clean


@pytest.mark.parametrize(
    ("header", "metrics", "lone"),
    [
        ("model,accuracy,loss_std", ["accuracy"], "loss_std"),
        ("model,MNLI acc,MNLI F1,MNLI std", ["acc", "F1"], "MNLI std"),
    ],
)
def test_a_spread_of_no_single_column_is_no_metric(header: str, metrics: list[str], lone: str, tmp_path: Path) -> None:
    row = ",82.1" * len(metrics) + ",0.4\n"
    read = read_table(write_text(tmp_path, f"{header}\nbase{row}ours{row}"))
    assert read.metrics == metrics
    assert any(lone in words and "no single column" in words for words in read.layout)


def test_a_spread_beside_seeds_is_checked_and_not_lone(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "model,acc_s1,acc_s2,acc_std\nbase,82,83,0.7\nours,83,84,0.7\n"))
    assert [stated.statistic for stated in read.stated] == ["sd", "sd"]


def test_a_part_of_a_model_is_no_spread(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "seed,base,ours,ours w/o SD\n1,82,83,82.5\n2,81,84,82.0\n"))
    assert read.arms == ["base", "ours", "ours w/o SD"]
