"""Mechanisms of the catalog are audited, and each verdict is the right one: a new entry inherits this.

An audit takes some ten seconds: `make test` takes a third of the catalog and all specimens, `make soak` everything.
"""

import os
from collections.abc import Mapping

import pytest

import attnlab

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


AUDITED = [
    name
    for number, (name, entry) in enumerate(attnlab.CATALOG.items())
    if number % 3 == 0 or entry.specimen or os.environ.get("ATTNLAB_SOAK")
]


@pytest.mark.parametrize("name", AUDITED)
def test_a_catalog_entry_gets_the_verdicts_it_deserves(name: str) -> None:
    audit = attnlab.audit(name, checks=JUDGED)
    assert {finding.name for finding in audit.failed} == FAILS.get(name, set()), str(audit)
    assert audit.passed == (not attnlab.CATALOG[name].specimen)
    for finding in audit.findings.values():
        assert finding.sentence.endswith(".")
        assert finding.passed or finding.where


@pytest.mark.parametrize("line", ["dot | softmax", "additive | softmax", "value-bypass", "cottention"])
@pytest.mark.parametrize("causal", [True, False])
def test_sound_mechanisms_pass_everything_asked_either_way(line: str, causal: bool) -> None:
    audit = attnlab.audit(line, causal=causal)
    assert audit.passed, str(audit)
    assert ("causal leak" in audit.findings) == causal


@pytest.mark.parametrize("name", ["leaking-mask", "zero-mask"])
def test_a_leaking_mask_leaks_only_where_there_is_something_to_mask(name: str) -> None:
    assert attnlab.audit(name, causal=False, checks=JUDGED).passed


@pytest.mark.parametrize(
    "line",
    ["dot | relu(divide=n) | mask(after)", "dot | sigmoid | mask(after)", "dot | identity(divide=n) | mask(zero)"],
)
def test_masks_that_fool_softmax_are_sound_where_no_weight_depends_on_another(line: str) -> None:
    assert attnlab.audit(line, causal=True, checks=["causal leak", "prefix consistency"]).passed


def test_dividing_by_n_or_its_root_settles_who_stays_level() -> None:
    powers = {}
    for divide in ("1", "sqrt_n", "n"):
        finding = attnlab.audit(f"dot | relu(divide={divide})", checks=["magnitude"]).findings["magnitude"]
        powers[divide] = [round(part.figure, 1) for part in finding.parts]
    # random tokens, aligned tokens, random tokens of one value
    assert powers == {"1": [0.5, 1.0, 1.0], "sqrt_n": [0.0, 0.5, 0.5], "n": [-0.5, 0.0, 0.0]}
