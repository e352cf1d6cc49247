"""A check of one's own, and what a check must return."""

import pytest

import attnlab
from attnlab.audits import Finding, Mode, Subject, check
from attnlab.audits.audit import choose_checks
from attnlab.errors import RequestError


@pytest.mark.usefixtures("own_checks")
def test_a_check_of_ones_own_is_a_function_and_a_decorator() -> None:
    @check("small outputs")
    def small_outputs(subject: Subject) -> Finding:
        out = subject.attend(subject.inputs(2, 16), Mode(causal=False))
        size = float(out.abs().max())
        return Finding("small outputs", size <= 100, size, 100.0, "Outputs stay small.")

    audit = attnlab.audit("baseline", checks=["small"])
    assert audit.passed
    assert audit.findings["small"].kind == "other"
    assert list(audit.findings) == ["small outputs"]
    assert choose_checks("mechanism", None, train=False)[-1].name == "small outputs"
    with pytest.raises(RequestError, match="'causal leak' exists already"):
        check("causal leak")(small_outputs)
    with pytest.raises(RequestError, match="needs a name"):
        check("")
    with pytest.raises(RequestError, match="'mechanism' or on 'model', not 'data'"):
        check("mine", on="data")  # type: ignore[arg-type]


@pytest.mark.usefixtures("own_checks")
def test_a_check_that_gives_no_finding_is_named() -> None:
    check("careless")(lambda subject: True)  # type: ignore[arg-type, return-value]
    with pytest.raises(RequestError, match="check 'careless' must return a Finding, or None, not bool"):
        attnlab.audit("baseline", checks=["careless"])
    check("impostor")(lambda subject: Finding("causal leak", True, 0.0, 0.0, "All is well."))
    with pytest.raises(RequestError, match="must return a Finding of its own name, not 'causal leak'"):
        attnlab.audit("baseline", checks=["impostor"])


@pytest.mark.usefixtures("own_checks")
def test_a_check_that_raises_is_a_finding_and_the_others_are_not_lost() -> None:
    @check("explosive")
    def explosive(subject: Subject) -> Finding:
        raise ZeroDivisionError("boo")

    audit = attnlab.audit("baseline", checks=["weights", "explosive"])
    finding = audit.findings["explosive"]
    assert not finding.passed
    assert finding.sentence == "The check raised ZeroDivisionError: boo."
    assert finding.where.startswith("test_check.py, line ")
    assert audit.findings["weights"].passed
    assert not audit.passed
