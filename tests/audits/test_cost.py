"""The cost of a mechanism is reported, never judged."""

from .faults import run_check


def test_a_quadratic_mechanism_costs_more_than_its_length() -> None:
    finding = run_check("additive | softmax", "cost", causal=False)
    assert (finding.verdict, finding.bound) == ("reported", None)
    shorter, longer = finding.data["lengths"]
    assert longer == 4 * shorter
    assert finding.data["bytes"][1] > finding.data["bytes"][0] > 0
    assert [part.name for part in finding.parts] == ["power of n, time", "power of n, memory"]
    assert f"kernel {finding.parts[0].kernel}" in finding.sentence
