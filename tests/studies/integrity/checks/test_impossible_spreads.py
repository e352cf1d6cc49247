"""SDs that no seeds within the limits of a metric can have are faults, in percent and as fractions."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.integrity import IntegrityKind
from tests.studies.integrity.result_tables import judge_file, write_text


@pytest.mark.parametrize(
    ("metric", "cell", "is_possible"),
    [
        ("accuracy", "98.1 ± 20.1", False),
        ("accuracy", "98.1 ± 15.2", True),
        ("mcc", "98.1 ± 23.1", False),
        ("mcc", "98.1 ± 20.1", True),
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
    assert "0.981 ± 0.201 (line 3, accuracy), at most 0.15" in finding.sentence


def test_the_most_extreme_seeds_are_possible(tmp_path: Path) -> None:
    """Seeds that are all at one of the limits, rounded."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        num, decimals = int(rng.integers(2, 9)), int(rng.integers(0, 4))
        values = np.where(np.arange(num) < rng.integers(1, num), 0.0, 100.0)
        cell = f"{values.mean():.{decimals}f} ± {values.std(ddof=1):.{decimals}f}"
        path = write_text(tmp_path, f"method,n_seeds,accuracy\nbase,{num},78.0 ± 0.4\nours,{num},{cell}\n")
        assert judge_file(path).is_clean, cell
