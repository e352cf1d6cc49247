"""Arms and groups with each other's values are found at the precision of papers; coincidences are not."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from attnlab.studies.integrity import IntegrityKind, Judgement
from tests.studies.integrity.result_tables import judge_file, list_faults, write_rows

VALUES = ("82.04", "81.63", "82.35", "81.91", "82.12")
OTHERS = ("83.13", "82.72", "83.41", "82.83", "83.07")
HEADER = "model,s1,s2,s3,s4,s5"


def judge_arms(tmp_path: Path, *arms: tuple[str, ...], **options: object) -> Judgement:
    rows = [f"arm{number},{','.join(values)}" for number, values in enumerate(arms)]
    path = write_rows(tmp_path, HEADER, rows)
    accuracies = Path(path).rename(tmp_path / "accuracy.csv")
    return judge_file(str(accuracies), **options)


def show_repeats(found: Judgement) -> str:
    return " ".join(it.sentence for it in found.findings if it.kind == IntegrityKind.REPEATED_VALUES)


def test_an_arm_with_the_values_of_another(tmp_path: Path) -> None:
    found = judge_arms(tmp_path, VALUES, VALUES, OTHERS)
    assert list_faults(found) == ["repeated values"]
    assert "arm1 has the accuracy of arm0 in 5 of 5 seeds." in show_repeats(found)


def test_the_values_of_another_arm_in_another_order(tmp_path: Path) -> None:
    found = judge_arms(tmp_path, VALUES, VALUES[2:] + VALUES[:2], OTHERS, num_examples=10_000)
    assert list_faults(found) == ["repeated values"]
    assert "arm1 has 5 of 5 values of arm0 (accuracy), in another order of seeds" in show_repeats(found)


def test_all_values_of_another_arm_in_another_order_are_a_note_if_chance_is_not_excluded(tmp_path: Path) -> None:
    found = judge_arms(tmp_path, VALUES, VALUES[2:] + VALUES[:2], OTHERS)
    assert not list_faults(found)
    assert "arm1 has 5 of 5 values of arm0 (accuracy), in another order of seeds" in show_repeats(found)
    assert "--examples N gives its size and may settle it" in show_repeats(found)


@pytest.mark.parametrize(
    "values",
    [VALUES[2:] + VALUES[:1] + ("80.00",), ("82.1", "82.2", "82.1", "82.2", "82.1")],
    ids=["4 of 5", "2 distinct"],
)
def test_some_values_in_another_order_are_no_note(values: tuple[str, ...], tmp_path: Path) -> None:
    first = VALUES if "80.00" in values else values[::-1][1:] + values[:1]
    assert not show_repeats(judge_arms(tmp_path, first, values, OTHERS))


def test_the_values_of_another_group(tmp_path: Path) -> None:
    rows = [f"ours,{task},{seed},{value},10000" for task in ("a", "b") for seed, value in enumerate(VALUES)]
    rows += [f"base,{task},{seed},{value},10000" for task, values in (("a", OTHERS), ("b", ("70.12", "70.93", "69.54",
             "71.30", "70.41"))) for seed, value in enumerate(values)]  # fmt: skip
    found = judge_file(write_rows(tmp_path, "model,task,seed,accuracy,n_test", rows))
    assert "repeated values" in list_faults(found)
    assert "ours b has the accuracy of ours a in 5 of 5 seeds" in show_repeats(found)


def test_equal_values_of_a_small_evaluation_set_are_no_fault(tmp_path: Path) -> None:
    assert not show_repeats(judge_arms(tmp_path, VALUES, VALUES[:3] + OTHERS[3:], num_examples=277))


def test_copies_that_depend_on_the_size_of_the_evaluation_set_are_a_note(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{VALUES[seed]}" for arm in ("base", "ours") for seed in range(3)]
    path = write_rows(tmp_path, "arm,seed,accuracy", rows)
    found = judge_file(path)
    assert "repeated values" not in list_faults(found)
    assert "ours has the accuracy of base in 3 of 3 seeds" in show_repeats(found)
    assert "--examples N" in show_repeats(found)
    assert "repeated values" in list_faults(judge_file(path, num_examples=10_000))


@pytest.mark.parametrize("failed", ["10.00", "52.71"])
def test_failed_seeds_with_one_score_are_no_copies(tmp_path: Path, failed: str) -> None:
    first, second = (failed, failed, *VALUES[2:]), (failed, failed, VALUES[2], *OTHERS[3:])
    assert "has the accuracy" not in show_repeats(judge_arms(tmp_path, first, second, num_examples=10_000))


def test_a_single_equal_value_of_two_decimals_is_explained_by_chance(tmp_path: Path) -> None:
    assert not show_repeats(judge_arms(tmp_path, VALUES, (VALUES[0], *OTHERS[1:]), num_examples=10_000))


def test_columns_of_many_seeds(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{80 + seed / 1e4:.4f}" for arm in ("base", "ours") for seed in range(900)]
    found = judge_file(write_rows(tmp_path, "arm,seed,score", rows))
    assert "repeated values" in list_faults(found)


TASKS = {
    "rte": (277, (183, 180, 186, 182, 184)),
    "mrpc": (408, (344, 347, 342, 346, 345)),
}


def judge_tasks(tmp_path: Path, tasks: Mapping[str, tuple[int, tuple[int, ...]]], changed: int = 0) -> Judgement:
    """Judge a table in which relu has softmax's values, but for `changed` of each task."""
    rows = []
    for task, (num_examples, counts) in tasks.items():
        for seed, count in enumerate(counts):
            arms = {"softmax": count, "relu": count + 3 * (seed < changed), "ours": count + 5 + seed % 2}
            rows += [
                f"{arm},{seed},{task},{100 * right / num_examples:.2f},{num_examples}" for arm, right in arms.items()
            ]
    return judge_file(write_rows(tmp_path, "arm,seed,task,accuracy,n_test", rows))


def test_an_arm_with_the_values_of_another_in_all_tasks(tmp_path: Path) -> None:
    found = judge_tasks(tmp_path, TASKS)
    assert list_faults(found) == ["repeated values"]
    assert "relu has the accuracy of softmax in 10 of 10 values of 2 groups." in show_repeats(found)
    assert not show_repeats(judge_tasks(tmp_path, TASKS, changed=2))


def test_seeds_with_the_same_value_are_no_evidence_and_no_counterevidence(tmp_path: Path) -> None:
    tasks = {**TASKS, "wnli": (71, (40, 40, 40, 40, 39)), "qnli": (500, (451, 460, 444, 451, 466))}
    found = judge_tasks(tmp_path, tasks)
    assert "relu has the accuracy of softmax in 20 of 20 values of 4 groups." in show_repeats(found)
    assert list_faults(found) == ["repeated values"]


def test_equal_arms_of_one_small_evaluation_set_are_a_note(tmp_path: Path) -> None:
    found = judge_tasks(tmp_path, {"rte": TASKS["rte"]})
    assert not list_faults(found)
    assert "relu rte has the accuracy of softmax rte in 5 of 5 seeds. They may be copies" in show_repeats(found)
    assert "--examples" not in show_repeats(found)
