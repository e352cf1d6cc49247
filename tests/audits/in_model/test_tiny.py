"""The audit of a mixer by its line."""

import pytest

import attnlab
from attnlab.errors import RequestError

pytestmark = pytest.mark.usefixtures("mixers")


def test_a_causal_mixer_passes_and_one_that_sees_the_future_fails() -> None:
    assert attnlab.audit("mixer(average)").passed
    assert attnlab.audit("mixer(stepping)").passed
    audit = attnlab.audit("mixer(peeking)")
    assert not audit.findings["leak"].passed
    assert audit.findings["leak"].where == "the module of 'mixer(peeking)': its forward, or its step if there is one"
    assert "GPT2LMHeadModel" in audit.subject
    assert attnlab.audit("mixer(peeking)", causal=False).passed


def test_of_a_line_by_layer_the_worst_part_counts() -> None:
    line = "mixer(peeking) @ 0; dot | softmax @ 1"
    audit = attnlab.audit(line, causal=True, checks=["leak", "equivalences"])
    assert not audit.findings["leak"].passed
    assert audit.findings["equivalences"].passed


def test_checks_of_pairs_do_not_apply() -> None:
    assert list(attnlab.audit("mixer(average)", checks=["leak", "equivalences"]).findings) == ["causal leak"]
    with pytest.raises(RequestError, match=r"'mixer\(average\)' has no pairs for the check 'equivalences'"):
        attnlab.audit("mixer(average)", checks=["equivalences"])
    with pytest.raises(RequestError, match="quux"):
        attnlab.audit("mixer(average)", checks=["leak", "quux"])
