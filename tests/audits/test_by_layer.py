"""The audit of a line by layer: every mechanism of it is audited, and one that fails makes the line fail."""

import attnlab

CHECKS = ["causal leak", "weights"]


def test_a_line_fails_if_one_of_its_mechanisms_does() -> None:
    line = "dot | softmax | window(64) @ 0-4 every 6; dot | softmax | mask(after) @ 5 every 6"
    audit = attnlab.audit(line, causal=True, checks=CHECKS)
    assert audit.subject == line
    assert list(audit.findings) == CHECKS
    assert [finding.name for finding in audit.failed] == ["causal leak"]
    leak = audit.findings["causal leak"]
    assert leak.sentence.startswith("'dot | softmax | mask(after)': ")
    assert "mask(after)" in leak.where
    assert "map" in leak.data
    for mechanism in ("dot | softmax | window(64)", "dot | softmax | mask(after)"):
        assert any(part.name.endswith(f", '{mechanism}'") for part in leak.parts)
    assert not audit.findings["weights"].judged


def test_a_line_passes_if_all_of_them_do() -> None:
    audit = attnlab.audit("dot | softmax @ 0; cosine | softmax @ 1", causal=True, checks=["causal leak"])
    assert audit.passed, str(audit)
    assert audit.findings["causal leak"].sentence.startswith("All 2 mechanisms pass; of '")
