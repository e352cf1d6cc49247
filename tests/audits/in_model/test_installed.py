"""Every mechanism of the catalog, installed: the model is as sound as the mechanism, no more and no less."""

from typing import Any

import pytest
from transformers import AutoModelForCausalLM

import attnlab
from tests.install.models import STARTED, build, deep_enough
from tests.sampling import is_sampled

ON_PROJECTIONS = {"value-bypass", "value-bypass-learned", "shared-qk", "shared-qkv", "gemma-hybrid", "qwen3-next-like"}
"""Mechanisms that a Llama with grouped key heads and two layers cannot take (tests/install/test_catalog.py)."""

LEAKING = {"leaking-mask", "zero-mask"}


def expected(name: str, family: str) -> set[str]:
    if name == "hard":
        return {"gradient flow"}
    return {"causal leak", "prefix consistency"} if name in LEAKING and family in ("gpt2", "llama") else set()


CASES = [
    (name, family)
    for first, name in enumerate(attnlab.CATALOG)
    for second, family in enumerate(STARTED)
    if is_sampled(first, second)
]


@pytest.mark.parametrize(("name", "family"), CASES)
def test_an_installed_mechanism_gets_the_verdicts_it_deserves(name: str, family: str) -> None:
    is_grouped = family == "llama" and name not in ON_PROJECTIONS
    model: Any = build("llama grouped", AutoModelForCausalLM) if is_grouped else deep_enough(family, name)
    audit = attnlab.audit(attnlab.install(model, name))
    assert {finding.name for finding in audit.failed} == expected(name, family), str(audit)
    assert attnlab.CATALOG[name].line in audit.subject
    for finding in audit.failed:
        assert "installed in the model" in finding.where or finding.name == "gradient flow"
