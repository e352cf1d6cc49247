"""An audit shows that nothing of a model's own positions is left."""

from typing import Any

import attnlab
from attnlab.install import own_positions

from .models import gpt2

NAME = "own positions"


def test_a_scheme_of_the_mechanism_is_checked_against_the_models_own(monkeypatch: Any) -> None:
    model = attnlab.install(gpt2(), "dot | softmax | nope")
    assert attnlab.audit(model, checks=[NAME]).passed
    monkeypatch.setattr(own_positions, "_return_zeros", lambda module, args, output: output)
    left = attnlab.install(gpt2(), "dot | softmax | nope")
    finding = attnlab.audit(left, checks=[NAME]).findings[NAME]
    assert not finding.passed
    assert "is left" in finding.sentence
