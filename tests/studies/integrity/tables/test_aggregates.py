"""A table of single seeds and of means is refused, with a way on."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import TableHints, read_table
from tests.studies.integrity.result_tables import judge_file, write_rows, write_text

RUNS = [f"base,{seed},{value},," for seed, value in enumerate(("82.1", "81.7", "82.6"))]


@pytest.mark.parametrize("std", ["std", "accuracy_std"])
def test_means_among_seeds(tmp_path: Path, std: str) -> None:
    path = write_rows(tmp_path, f"method,seed,accuracy,{std},n_seeds", [*RUNS, "ours,,82.5,0.4,3"])
    with pytest.raises(RequestError, match=r"'seed' is empty in line 5 and names.*keep the rows of single seeds"):
        judge_file(path)


def test_a_row_that_is_the_mean_of_the_others(tmp_path: Path) -> None:
    path = write_rows(tmp_path, "method,seed,accuracy,a,b", [*RUNS, "base,mean,82.13,,"])
    with pytest.raises(RequestError, match="'seed' is 'mean' in line 5"):
        judge_file(path)


def test_means_with_a_spread_among_unnamed_runs(tmp_path: Path) -> None:
    rows = ["base,82.1", "base,81.7", "base,82.6", "ours,82.5 ± 0.4"]
    with pytest.raises(RequestError, match="single runs, such as line 2, accuracy, and rows of means with ±: ours"):
        judge_file(write_rows(tmp_path, "method,accuracy", rows))


def test_runs_that_all_have_a_spread_are_runs(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{82 + seed / 10} ± 1.2" for arm in ("base", "ours") for seed in range(5)]
    found = judge_file(write_rows(tmp_path, "method,seed,accuracy", rows))
    assert not found.table.values[0].is_mean


def test_runs_with_a_spread_of_one_metric_are_runs(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{82 + seed / 10},1.2,{seed / 7}" for arm in ("base", "ours") for seed in range(5)]
    found = judge_file(write_rows(tmp_path, "method,seed,accuracy,accuracy_std,loss", rows))
    assert found.table.metrics == ["accuracy", "loss"]


@pytest.mark.parametrize("text", ["–", "--", "n/a", ""])
def test_a_mean_that_is_not_reported_is_no_failed_run(tmp_path: Path, text: str) -> None:
    rows = ["base,82.1 ± 0.4,70 ± 1,5", f"relu,82.5 ± 0.4,{text},5", "ours,82.9 ± 0.4,71 ± 1,5"]
    found = judge_file(write_rows(tmp_path, "method,acc,f1,n_seeds", rows))
    assert [(row.arm, row.metric) for row in found.analyses[0].rows] == [
        ("relu", "acc"),
        ("ours", "acc"),
        ("ours", "f1"),
    ]
    assert any(word.startswith("not reported, and so not compared: relu f1 (line 3") for word in found.table.layout)


def test_a_mean_that_failed_is_a_failed_run(tmp_path: Path) -> None:
    rows = ["base,82.1 ± 0.4,5", "ours,diverged,5"]
    found = judge_file(write_rows(tmp_path, "method,acc,n_seeds", rows))
    assert "failed" in found.analyses[0].rows[0].verdict


@pytest.mark.parametrize("name", ["Average", "Avg.", "mean"])
def test_averages_over_tasks_are_no_task(tmp_path: Path, name: str) -> None:
    rows = [f"{task},82.{n},83.{n}" for n, task in enumerate(("rte", "mrpc", name))]
    in_rows = judge_file(write_rows(tmp_path, "task,base,ours", rows)).table
    assert in_rows.groups == ["rte", "mrpc"]
    assert f"not compared, as a mean of other groups: '{name}'" in in_rows.layout
    columns = judge_file(write_rows(tmp_path, f"model,rte,mrpc,{name}", ["base,1,2,1.5", "ours,2,3,2.5"])).table
    assert columns.groups == ["rte", "mrpc"]
    assert f"not compared, as means or spreads of others: '{name}'" in columns.layout


@pytest.mark.parametrize("mark", ["✗", "x", "OOM", "–"])
def test_a_mark_in_a_table_of_means_is_no_failed_run(mark: str, tmp_path: Path) -> None:
    means = f"model,acc,f1\nbase,82.1 ± 0.3,{mark}\nours,83.0 ± 0.2,80.1 ± 0.2\n"
    read = read_table(write_text(tmp_path, means), hints=TableHints(num_seeds=5))
    assert [cell.value for cell in read.cells] == [82.1, 83.0, 80.1]
    assert any("not reported" in words and "base f1" in words for words in read.layout)


def test_a_mark_in_a_table_of_runs_is_a_failed_run(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "model,s1,s2\nbase,82.1,OOM\nours,83.0,82.9\n"))
    assert [cell.value for cell in read.cells] == [82.1, None, 83.0, 82.9]
