"""Every mechanism of the catalog, installed: the model it is in is as sound as the mechanism, no more and no less."""

import pytest
import torch

import attnlab
from attnlab.errors import InstallError

from .test_models import MODELS

FAMILIES = ("BERT", "RoBERTa", "GPT-2", "Llama")
GROUPED = {"value-bypass", "value-bypass-learned", "shared-qk", "shared-qkv"}
"""What the grouped key heads of a Llama cannot take."""

LEAKING = {"leaking-mask", "zero-mask"}


def expected(name: str, family: str) -> set[str]:
    if name == "hard":
        return {"gradient flow"}
    return {"causal leak", "prefix consistency"} if name in LEAKING and family in ("GPT-2", "Llama") else set()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", attnlab.CATALOG)
def test_an_installed_mechanism_gets_the_verdicts_it_deserves(name: str, family: str) -> None:
    torch.manual_seed(0)
    model = MODELS[family]()
    if family == "Llama" and name in GROUPED:
        with pytest.raises(InstallError, match="key heads are grouped"):
            attnlab.install(model, name)
        return
    attnlab.install(model, name)
    audit = attnlab.audit(model)
    assert {finding.name for finding in audit.failed} == expected(name, family), str(audit)
    assert attnlab.CATALOG[name].line in audit.subject
    for finding in audit.failed:
        assert "installed in the model" in finding.where or finding.name == "gradient flow"


def test_a_fused_projection_is_looked_at_in_thirds() -> None:
    model = MODELS["GPT-2"]()
    attnlab.install(model, "dot | argmax")
    finding = attnlab.audit(model, checks=["gradient"]).findings["gradient flow"]
    assert "c_attn.weight (first third)" in finding.where
    assert "c_attn.weight (last third)" not in finding.where
