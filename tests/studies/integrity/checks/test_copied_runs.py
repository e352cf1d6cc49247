"""A run with the values of another run in all tasks is found; runs that agree for another reason are not."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.integrity import IntegrityKind, Judgement
from tests.studies.integrity.result_tables import judge_file, write_rows

ARMS, SEEDS = ("base", "ours"), range(1, 6)
Rows = dict[tuple[str, int], list[str]]


def draw_runs(num_tasks: int = 8, decimals: int = 2) -> Rows:
    rng = np.random.default_rng(1)
    means = {"base": rng.uniform(60, 95, num_tasks)}
    means["ours"] = means["base"] + 0.8
    runs = [(arm, seed) for arm in ARMS for seed in SEEDS]
    return {run: [f"{value:.{decimals}f}" for value in rng.normal(means[run[0]], 0.4)] for run in runs}


def judge_runs(tmp_path: Path, rows: Rows, is_long: bool = False) -> Judgement:
    if is_long:
        lines = [f"{arm},{seed},t{task},{text}" for (arm, seed), row in rows.items() for task, text in enumerate(row)]
        return judge_file(write_rows(tmp_path, "model,seed,task,accuracy", lines))
    names = ",".join(f"task{task}" for task in range(len(rows["base", 1])))
    lines = [",".join([arm, str(seed), *row]) for (arm, seed), row in rows.items()]
    return judge_file(write_rows(tmp_path, f"model,seed,{names}", lines))


def list_repeats(found: Judgement) -> list[tuple[bool, str]]:
    return [(it.is_fault, it.sentence) for it in found.findings if it.kind == IntegrityKind.REPEATED_VALUES]


@pytest.mark.parametrize("source", [("base", 4), ("ours", 2)])
@pytest.mark.parametrize("is_long", [True, False])
def test_a_copied_run_is_a_fault(tmp_path: Path, source: tuple[str, int], is_long: bool) -> None:
    rows = draw_runs()
    rows["ours", 4] = rows[source]
    ((is_fault, sentence),) = list_repeats(judge_runs(tmp_path, rows, is_long))
    assert is_fault
    assert f"ours seed 4 has all 8 values of {source[0]} seed {source[1]}" in sentence


def test_a_copied_run_with_one_value_changed_is_a_fault(tmp_path: Path) -> None:
    rows = draw_runs()
    rows["ours", 4] = [*rows["base", 4][:7], "50.00"]
    ((is_fault, sentence),) = list_repeats(judge_runs(tmp_path, rows))
    assert is_fault
    assert "7 of 8 values" in sentence


def test_clean_runs_have_no_finding(tmp_path: Path) -> None:
    assert not list_repeats(judge_runs(tmp_path, draw_runs()))


def test_equal_values_of_small_evaluation_sets_are_no_copies(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {
        (arm, seed): [f"{100 * right / 71:.2f}" for right in rng.integers(39, 42, 4)] for arm in ARMS for seed in SEEDS
    }
    rows["ours", 4] = rows["base", 4]
    assert not any(is_fault or "seed 4" in sentence for is_fault, sentence in list_repeats(judge_runs(tmp_path, rows)))


def test_saturated_tasks_are_no_copies(tmp_path: Path) -> None:
    rows = {run: ["100.00"] * 7 + row[:1] for run, row in draw_runs().items()}
    assert not list_repeats(judge_runs(tmp_path, rows))


def test_runs_that_failed_with_the_same_scores_are_no_fault(tmp_path: Path) -> None:
    rows = draw_runs()
    rows["ours", 2] = rows["ours", 4] = ["50.00", "33.33", "31.62", "50.92", "52.71", "49.46", "50.54", "20.00"]
    assert not any(is_fault for is_fault, _ in list_repeats(judge_runs(tmp_path, rows)))


def test_metrics_that_follow_from_each_other_count_once(tmp_path: Path) -> None:
    values = {("base", seed): 84 + 0.11 * (seed % 3) + 0.01 * seed for seed in SEEDS}
    values |= {("ours", seed): 84.6 + 0.13 * (seed % 4) + 0.01 * seed for seed in SEEDS}
    values["ours", 4] = values["base", 4]
    rows = [f"{arm},{seed},{value:.2f},{100 - value:.2f},{2 * value:.2f}" for (arm, seed), value in values.items()]
    assert not list_repeats(judge_file(write_rows(tmp_path, "model,seed,accuracy,error,score", rows)))


def test_small_evaluation_sets_of_several_tasks_raise_no_alarm(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sizes = (277, 408, 71, 872)
    rows = {
        (arm, seed): [f"{100 * rng.binomial(size, 0.8) / size:.2f}" for size in sizes] for arm in ARMS for seed in SEEDS
    }
    assert not list_repeats(judge_runs(tmp_path, rows))
    assert not list_repeats(judge_runs(tmp_path, rows, is_long=True))
