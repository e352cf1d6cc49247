"""`attnlab.audit`: what it takes, and what it returns."""

from pathlib import Path

import pytest
import torch

import attnlab
from attnlab.errors import AttnlabError, MechanismError, RequestError


def test_findings_say_all_that_is_needed() -> None:
    audit = attnlab.audit("dot | softmax | mask(after)", causal=True, checks=["leak", "weights"])
    assert not audit.passed
    finding = audit.findings["causal leak"]
    assert (finding.passed, finding.kind, finding.verdict) == (False, "leak", "FAILED")
    assert finding.figure > finding.bound  # type: ignore[operator]
    assert "future" in finding.sentence
    assert "mask(after)" in finding.where
    assert "mask(after)" in str(audit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"causal": 1}, "causal must be True, False or None, not 1"),
        ({"checks": []}, "an audit without a check would pass anything"),
        ({"checks": ["leek"]}, "no check is named 'leek', did you mean 'leak'"),
    ],
)
def test_a_wrong_request_is_one_clear_error(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        attnlab.audit("baseline", **arguments)  # type: ignore[arg-type]


def test_what_is_neither_mechanism_nor_model_is_refused() -> None:
    with pytest.raises(MechanismError):
        attnlab.audit("dot | sofmax")
    with pytest.raises(RequestError, match="or a Hugging Face model, not Linear"):
        attnlab.audit(torch.nn.Linear(2, 2))
    with pytest.raises(AttnlabError):
        attnlab.audit(7)  # type: ignore[arg-type]


def test_an_audit_leaves_random_numbers_and_threads_alone() -> None:
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    attnlab.audit("baseline", checks=["cost"])
    assert torch.equal(torch.get_rng_state(), state)
    first = attnlab.audit("token-dropout", causal=True, checks=["padding", "gradient", "numerics"])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    again = attnlab.audit("token-dropout", causal=True, checks=["padding", "gradient", "numerics"])
    assert first.record()["findings"] == again.record()["findings"]


def test_a_folder_says_how_its_model_is_audited(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is a folder") as caught:
        attnlab.audit(str(tmp_path))
    assert f"attnlab.load({str(tmp_path)!r})" in str(caught.value)
    assert f"attnlab audit --model {tmp_path}" in str(caught.value)
