"""SDs that no seeds within the limits of a metric can have are faults, in percent and as fractions."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.integrity import Cell, IntegrityKind
from attnlab.studies.integrity.checks.impossible_spreads import _bound_sd
from tests.studies.integrity.result_tables import judge_file, write_text


@pytest.mark.parametrize(
    ("metric", "cell", "is_possible"),
    [
        ("accuracy", "98.1 ± 20.1", False),
        ("accuracy", "98.1 ± 4.6", False),
        ("accuracy", "98.1 ± 4.3", True),
        ("accuracy", "50.0 ± 60.1", False),
        ("mcc", "50.0 ± 60.1", True),
        ("mcc", "98.1 ± 20.1", False),
        ("f1", "2.0 ± 17.1", False),
        ("accuracy", "100.0 ± 0.1", True),
        ("loss", "98.1 ± 120.1", True),
    ],
)
def test_a_spread_beyond_the_limits(metric: str, cell: str, is_possible: bool, tmp_path: Path) -> None:
    found = judge_file(write_text(tmp_path, f"method,n_seeds,{metric}\nbase,5,78.0 ± 0.4\nours,5,{cell}\n"))
    kinds = [finding.kind for finding in found.faults]
    assert kinds == ([] if is_possible else [IntegrityKind.IMPOSSIBLE_VALUES])
    assert is_possible or found.left_out[0].arm == "ours"


def test_a_fraction_in_one_unit(tmp_path: Path) -> None:
    path = write_text(tmp_path, "method,n_seeds,accuracy\nbase,5,0.980 ± 0.004\nours,5,0.981 ± 0.201\n")
    assert [finding.kind for finding in judge_file(path).faults] == [IntegrityKind.MIXED_UNITS]
    (finding,) = judge_file(path, units="fraction").faults
    assert "0.981 ± 0.201 (line 3, accuracy), at most 0.0436 with 5 seeds" in finding.sentence


def test_a_spread_that_only_values_beyond_the_limit_have(tmp_path: Path) -> None:
    """Three seeds with a mean of 98.9 have at most 100, 100 and 96.7; those with 98.85 an SD of 1.99."""
    table = "mean ± std, 3 seeds\n\n| method | accuracy |\n|---|---|\n| base | 97.9 ± 0.4 |\n| ours | 98.9 ± {} |\n"
    path = tmp_path / "table.md"
    path.write_text(table.format("2.4"))
    (finding,) = judge_file(str(path)).faults
    assert "98.9 ± 2.4" in finding.sentence
    assert "at most 1.99 with 3 seeds" in finding.sentence
    path.write_text(table.format("2.0"))
    assert judge_file(str(path)).is_clean


@pytest.mark.parametrize(("mean", "sd", "is_possible"), [(98.0, 14.1, True), (98.0, 14.4, False), (50.0, 70.7, True)])
def test_an_unknown_number_of_seeds(mean: float, sd: float, is_possible: bool, tmp_path: Path) -> None:
    """One of 50 seeds at 0 and the others at 100 have 98 ± 14.1; no number of seeds has more."""
    found = judge_file(write_text(tmp_path, f"method,accuracy\nbase,78.0 ± 0.4\nours,{mean} ± {sd}\n"))
    assert found.is_clean == is_possible


def test_the_largest_spread_is_reached_and_not_exceeded() -> None:
    """Random values within the limits, of which many are at an end; the largest SD is that of some of them."""
    rng = np.random.default_rng(1)
    for num in (2, 3, 4, 7):
        for mean in (0.02, 0.3, 0.5, 0.66, 0.97):
            exact = _bound_sd(Cell("a", "", "accuracy", "1", None, mean, f"{mean:.17f}", "", None, 0.1, num), 1.0)
            values = rng.choice([0.0, 1.0], (20_000, num), p=[1 - mean, mean])
            # The last value gives the mean.
            values[:, -1] = num * mean - values[:, :-1].sum(axis=1)
            values = values[(values[:, -1] >= 0) & (values[:, -1] <= 1)]
            assert np.isclose(values.std(axis=1, ddof=1).max(), exact), (num, mean)
            values = rng.beta(0.3, 0.3 / mean - 0.3, (20_000, num))
            values[:, -1] = num * mean - values[:, :-1].sum(axis=1)
            values = values[(values[:, -1] >= 0) & (values[:, -1] <= 1)]
            assert values.std(axis=1, ddof=1).max() <= exact + 1e-9, (num, mean)


def test_the_most_extreme_seeds_are_possible(tmp_path: Path) -> None:
    """Seeds of which all but one are at one of the limits, rounded."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        num, decimals = int(rng.integers(2, 9)), int(rng.integers(0, 4))
        values = np.where(np.arange(num) < rng.integers(1, num), 0.0, 100.0)
        values[0] = rng.choice([0.0, rng.uniform(0, 100)])
        cell = f"{values.mean():.{decimals}f} ± {values.std(ddof=1):.{decimals}f}"
        path = write_text(tmp_path, f"method,n_seeds,accuracy\nbase,{num},78.0 ± 0.4\nours,{num},{cell}\n")
        assert judge_file(path).is_clean, cell
