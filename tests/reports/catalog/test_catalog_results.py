"""The catalog's results: every mechanism is computed, checked, timed, and reported in order."""

import dataclasses

from attnlab.kernels.comparison import Setting
from attnlab.mechanisms import CATALOG
from attnlab.reports.catalog import catalog_results
from attnlab.reports.catalog.catalog_results import PLAN, SEEN, CatalogPlan

NAMES = ("baseline", "additive", "hard", "cosine-linear")
SMALL = CatalogPlan(
    names=NAMES,
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


def test_the_whole_catalog_is_shown() -> None:
    assert tuple(PLAN.names) == tuple(CATALOG)
    assert {*PLAN.growing, *PLAN.audited, *SEEN} <= set(CATALOG)


def test_progress_counts_to_the_end() -> None:
    told: list[tuple[int, int, str]] = []
    plan = dataclasses.replace(SMALL, names=NAMES[:1], lengths=(8,))
    catalog_results.run_catalog(plan, lambda *now: told.append(now))
    assert [done for done, _, _ in told] == [0, 1, 2, 3, 4, 5]
    assert {total for _, total, _ in told} == {5}
    assert told[-2][2] == "audit of leaking-mask"


def test_the_pictures_are_the_same_at_every_run() -> None:
    assert catalog_results.draw_weights() == catalog_results.draw_weights()
