"""Columns of seeds are found by their names; recall at k and other numbered metrics are none."""

import pytest

from attnlab.studies.integrity.tables.patterns import find_seed_columns


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["s1", "s2", "s3"], "s{seed}"),
        (["run_1", "run_2"], "run_{seed}"),
        (["seed=0", "seed=1"], "seed={seed}"),
        (["Seed 42", "Seed 43"], "Seed {seed}"),
        (["acc_s1", "acc_s2", "mean"], "acc_s{seed}"),
        (["acc_s1", "acc_s2", "f1_s1", "f1_s2"], "{metric}_s{seed}"),
        (["0", "1", "2"], "{seed}"),
    ],
)
def test_columns_of_seeds(names: list[str], text: str) -> None:
    pattern = find_seed_columns(names)
    assert pattern is not None
    assert pattern.text == text
    assert set(pattern.meanings) == set(names) - {"mean"}


@pytest.mark.parametrize(
    "names", [["R@1", "R@5"], ["top1", "top5"], ["R1", "R2", "RL"], ["S4", "acc"], ["MNLI", "QQP"]]
)
def test_other_columns(names: list[str]) -> None:
    assert find_seed_columns(names) is None
