"""A small catalog, computed once for all tests of its page."""

import pytest

from attnlab.kernels.comparison import Setting
from attnlab.reports.catalog.catalog_results import CatalogPlan, CatalogResults, run_catalog

SMALL = CatalogPlan(
    names=("baseline", "additive", "hard", "cosine-linear"),
    checked=Setting(num_heads=2, head_dim=8),
    checked_length=9,
    timed=Setting(num_heads=2, head_dim=8),
    timed_length=16,
    growing=("baseline", "cosine-linear"),
    lengths=(8, 16),
    audited=("baseline", "leaking-mask"),
    checks=("causal leak", "gradient flow"),
    budget=0,
)
Steps = list[tuple[int, int, str]]


@pytest.fixture(scope="session")
def computed() -> tuple[CatalogResults, Steps]:
    """The results, and the steps that were reported on the way."""
    steps: Steps = []
    return run_catalog(SMALL, lambda *step: steps.append(step)), steps


@pytest.fixture(scope="session")
def shown(computed: tuple[CatalogResults, Steps]) -> CatalogResults:
    return computed[0]
