"""Caches of a model give the outputs of the whole sequence."""

import attnlab

from .models import gpt2


def test_caches_are_compared_if_the_model_keeps_any() -> None:
    names = [part.name for part in attnlab.audit(gpt2(), checks=["prefix"]).findings["prefix"].parts]
    assert names[0] == "prefix alone"
    assert {name.split(",")[0] for name in names[1:]} == {"cache", "static cache"}
    uncached = gpt2()
    forward = uncached.forward
    uncached.forward = lambda input_ids=None, attention_mask=None: forward(input_ids, attention_mask=attention_mask)
    finding = attnlab.audit(uncached, checks=["prefix"]).findings["prefix"]
    assert [part.name for part in finding.parts] == ["prefix alone"]
    assert "keeps no cache" in finding.sentence
