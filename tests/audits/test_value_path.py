"""The variance of values before and after a stage."""

import pytest
import torch

from attnlab.audits.value_path import variance

from .faults import run_check


def test_variance_on_the_value_path_can_fall() -> None:
    x = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = variance(-0.5 * x, x.relu(), 0.5)
    assert found.before == pytest.approx(0.250, abs=2e-3)
    assert found.after == pytest.approx(0.085, abs=2e-3)
    assert found.predicted == pytest.approx(found.after, rel=1e-12)
    assert found.covariance == pytest.approx(-0.25, abs=2e-3)
    assert found.trend == "falls"


def test_the_bypass_weighs_less_in_wider_layers() -> None:
    finding = run_check("value-bypass", "value path")
    rows = finding.data["bypass(alpha=0.5)"]
    shares = [rows[width]["share"] for width in ("64", "256", "1024")]
    assert shares == sorted(shares, reverse=True)
    for row in rows.values():
        assert row["predicted"] == pytest.approx(row["after"], rel=1e-9)
        # α² E[R²] is 1/8 for a ReLU of unit-variance inputs, whatever the width.
        assert row["share"] * (row["after"] + 0.04) == pytest.approx(0.125, rel=0.1)
