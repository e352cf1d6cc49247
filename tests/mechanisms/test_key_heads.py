"""heads(kv=N) as a stage: it has one argument, and says in a call that it acts in a model."""

import pytest
import torch

import attnlab
from attnlab.errors import MechanismError
from attnlab.mechanisms import KeyHeads, Mechanism


def test_it_is_written_with_its_number() -> None:
    mechanism = Mechanism.parse("heads(kv=2) | dot")
    assert mechanism.kv_heads == KeyHeads(2)
    assert str(mechanism) == "dot | softmax | heads(kv=2)"
    assert Mechanism.parse("dot | softmax | heads(2)") == mechanism


@pytest.mark.parametrize(("line", "message"), [("heads", "heads needs kv=…"), ("heads(kv=0)", "kv must be at least 1")])
def test_it_needs_a_number_of_heads(line: str, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        Mechanism.parse(f"dot | softmax | {line}")


def test_a_call_computes_the_baseline_and_explains_why() -> None:
    q, k, v = torch.randn(3, 1, 4, 6, 8, generator=torch.Generator().manual_seed(0)).unbind(0)
    assert torch.equal(attnlab.attend(q, k, v, "dot | softmax | heads(kv=2)"), attnlab.attend(q, k, v, "dot | softmax"))
    assert "k and v come with their heads already" in str(attnlab.explain("multi-query", 8))
