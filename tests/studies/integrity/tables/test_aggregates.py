"""A table of single seeds and of means is refused, with a way on."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from tests.studies.integrity.result_tables import judge_file, write_rows

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
