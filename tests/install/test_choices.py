"""Choices of every slot that no catalog entry has: they compute, are audited, train, survive saving, and decode."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import attnlab
from attnlab.mechanisms import CATALOG
from tests.install.models import learned, padding, tokens
from tests.install.test_catalog import started, step
from tests.sampling import IS_SOAK, is_sampled

LINES = (
    "dot | softmax | norm(rms)",
    "dot | softmax | norm(rms, gain=head)",
    "dot | softmax | norm(l2, gain=channel)",
    "dot | softmax | shift(keys, share=0.25)",
    "dot | identity(divide=sum) | feature(relu)",
    "dot | identity(divide=sum) | feature(softmax)",
    "dot | softmax | feature(elu1)",
    "dot | softmax | rope(base=500, share=0.5)",
    "dot | softmax | relative(buckets=8, max_distance=16)",
    "minkowski(p=3) | softmax",
    "dot | softmax | forget(rate=0.9)",
    "dot | identity | forget(rate=0.9)",
    "dot | sigmoid | forget",
    "dot | relu(divide=sqrt_n)",
    "dot | gelu(divide=learned)",
    "dot | sigmoid(divide=sum)",
    "dot | cap(5) | softmax(sink=learned)",
    "dot | softmax | window(8) | chunk(4)",
    "dot | softmax | top_k(3) | window(8)",
    "dot | softmax | differential(lambda_init=0.7)",
    "dot | softmax1 | talking_heads",
    "dot | softmax | delta(beta=0.5) | norm(l2)",
    "dot | softmax | delta | norm(l2)",
    "dot | identity | delta(beta=0.5) | norm(l2)",
    "dot | softmax | gate(from=q, per=head)",
    "dot | softmax | gate(from=q, per=channel)",
    "dot | softmax | gate(per=head)",
    "dot | softmax | head_norm",
    "dot | softmax | exclusive(alpha=0.5) | head_norm | gate",
    "dot | softmax | rope | norm(rms) | heads(kv=2) | window(8)",
    "dot | softmax | share(kv) | alibi",
)

FAULTS = {
    # Saturated features are almost orthogonal: a row's weights sum to a number whose inverse overflows in fp32.
    "dot | identity(divide=sum) | feature(softmax)": {"numerics"},
}
"""What an audit rightly finds beside growth with the length."""

CASES = [
    (kind, line)
    for first, kind in enumerate(("bert", "gpt2", "llama"))
    for second, line in enumerate(LINES)
    if is_sampled(first, second)
]


@pytest.mark.parametrize("line", LINES)
def test_it_is_in_no_catalog_entry_and_its_kernel_computes_it(line: str) -> None:
    mechanism = attnlab.Mechanism.parse(line)
    assert attnlab.Mechanism.parse(str(mechanism)) == mechanism
    assert mechanism not in {entry.mechanism for entry in CATALOG.values()}
    q, k, v = torch.randn(3, 2, 4, 33, 8, dtype=torch.float64)
    x = torch.randn(2, 33, 32, dtype=torch.float64)
    for causal in (True, False):
        found, expected = (
            attnlab.attend(q, k, v, line, causal=causal, x=x, kernel=kernel) for kernel in ("auto", "reference")
        )
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
        assert found.isfinite().all()


@pytest.mark.skipif(not IS_SOAK, reason="some ten seconds each: make soak")
@pytest.mark.parametrize("line", LINES)
def test_its_audit_passes(line: str) -> None:
    audit = attnlab.audit(line)
    known = {"magnitude against length", *FAULTS.get(line, ())}
    assert {finding.name for finding in audit.failed} <= known, str(audit)


@pytest.mark.parametrize(("kind", "line"), CASES)
def test_it_trains_is_saved_and_decodes(kind: str, line: str, tmp_path: Path) -> None:
    model = started(kind, line)
    step(model)
    assert all(p.grad is not None and p.grad.any() for p in learned(model).values())
    attnlab.save(model, tmp_path)
    loaded = attnlab.load(tmp_path, line)
    with torch.no_grad():
        found, expected = (m(tokens(), attention_mask=padding("right")).logits for m in (loaded, model))
    assert torch.equal(found, expected)
    if kind == "bert":
        return
    with_cache, without = (
        model.generate(tokens(), attention_mask=padding("left"), max_new_tokens=5, do_sample=False, use_cache=use_cache)
        for use_cache in (True, False)
    )
    assert torch.equal(with_cache, without)
