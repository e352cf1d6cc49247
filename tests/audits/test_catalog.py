"""Mechanisms of the catalog are audited, and each verdict is the right one: a new entry inherits this.

An audit takes some ten seconds: `make test` audits an eighth of the catalog and all specimens, and compares whole
sequences with prefixes, caches and recurrent forms for the rest, as well as lengths; `make soak` audits everything.
"""

from collections.abc import Mapping

import pytest

import attnlab
from tests.sampling import IS_SOAK

JUDGED = (
    "causal leak", "prefix consistency", "padding and batch invariance", "gradient flow", "numerics", "equivalences",
    "magnitude against length", "weights", "value path",
)  # fmt: skip

FAILS: Mapping[str, set[str]] = {
    "hard": {"gradient flow"},
    "leaking-mask": {"causal leak", "prefix consistency"},
    "zero-mask": {"causal leak", "prefix consistency"},
    "undivided-linear": {"magnitude against length"},
}
"""What is known to be wrong with the specimens; nothing else may fail."""


EITHER_WAY = ("baseline", "additive", "value-bypass", "cottention", "leaking-mask", "zero-mask")
"""Mechanisms that are also audited without a causal mask, under which the two leaking masks are sound."""

AUDITED = [
    name
    for number, (name, entry) in enumerate(attnlab.CATALOG.items())
    if number % 8 == 0 or entry.specimen or name in EITHER_WAY or IS_SOAK
]


@pytest.mark.parametrize("name", AUDITED)
def test_a_catalog_entry_gets_the_verdicts_it_deserves(name: str) -> None:
    audit = attnlab.audit(name, checks=JUDGED)
    assert {finding.name for finding in audit.failed} == FAILS.get(name, set()), str(audit)
    assert audit.passed == (not attnlab.CATALOG[name].specimen)
    for finding in audit.findings.values():
        assert finding.sentence.endswith(".")
        assert finding.passed or finding.where


@pytest.mark.parametrize("name", [name for name in attnlab.CATALOG if name not in AUDITED])
def test_every_other_entry_decodes_what_it_computes_at_once_and_does_not_grow(name: str) -> None:
    audit = attnlab.audit(name, causal=True, checks=["prefix consistency", "magnitude against length"])
    assert audit.passed, str(audit)


@pytest.mark.parametrize("name", EITHER_WAY)
def test_it_passes_without_a_causal_mask(name: str) -> None:
    # The audit with both causalities, above, runs the other checks without a causal mask too.
    checks = ["causal leak", "prefix consistency", "gradient flow", "magnitude against length", "weights"]
    audit = attnlab.audit(name, causal=False, checks=checks)
    assert audit.passed, str(audit)
    assert list(audit.findings) == checks[2:]


@pytest.mark.parametrize(
    "line",
    ["dot | relu(divide=n) | mask(after)", "dot | sigmoid | mask(after)", "dot | identity(divide=n) | mask(zero)"],
)
def test_masks_that_fool_softmax_are_sound_where_no_weight_depends_on_another(line: str) -> None:
    assert attnlab.audit(line, causal=True, checks=["causal leak", "prefix consistency"]).passed
