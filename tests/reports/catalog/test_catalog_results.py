"""The catalog's results: every mechanism is computed, checked, timed, and reported in order."""

from attnlab.mechanisms import CATALOG, UNIFORM
from attnlab.reports.catalog import catalog_results
from attnlab.reports.catalog.catalog_results import PLAN, SEEN, CatalogResults

from .conftest import Steps


def test_the_whole_catalog_is_shown() -> None:
    assert tuple(PLAN.names) == tuple(UNIFORM)  # a line by layer has no time of a single call
    assert {*PLAN.growing, *PLAN.audited, *SEEN} <= set(CATALOG)


def test_progress_counts_to_the_end(computed: tuple[CatalogResults, Steps]) -> None:
    _, steps = computed
    assert [done for done, _, _ in steps] == list(range(10))
    assert {total for _, total, _ in steps} == {9}
    assert steps[-2][2] == "audit of leaking-mask"


def test_the_summary_counts_agreement_and_audits(shown: CatalogResults) -> None:
    assert (shown.score, shown.remainder, shown.holds) == ("4 of 4", "", True)
    assert shown.audited == "1 of 2 audited are sound; not: leaking-mask"


def test_the_pictures_are_the_same_at_every_run() -> None:
    assert catalog_results.draw_weights() == catalog_results.draw_weights()
