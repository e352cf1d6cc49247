"""A check of one's own, and what a check must return."""

from dataclasses import dataclass

import pytest
from torch import Tensor

import attnlab
from attnlab.audits import (
    CHECKS,
    Finding,
    Mode,
    Subject,
    check,
    in_model,  # noqa: F401  (registers the checks of models)
)
from attnlab.audits.audit import choose_checks
from attnlab.check_names import NAMES
from attnlab.errors import RequestError
from attnlab.mechanisms import Dims, Parameter, Params, Weights, stage

from .faults import register_sleeping, run_check

AT_START = {"gradient flow", "weights", "value path", "cost", "i.i.d. test"}
"""Checks of initial values: gradient flow looks at both, the last three only describe or train by themselves."""


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


def test_the_names_of_all_checks_are_known_without_them() -> None:
    for kind, checks in CHECKS.items():
        own = [name for name, known in checks.items() if known.function.__module__.startswith("attnlab.")]
        assert set(own) == set(NAMES[kind])


def test_every_check_that_compares_outputs_moves_learned_parameters() -> None:
    for checks in CHECKS.values():
        assert {name for name, known in checks.items() if not known.moves_parameters} <= AT_START


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("name", ["prefix consistency", "padding and batch invariance"])
def test_a_stage_that_is_broken_only_once_it_is_trained_is_found(name: str) -> None:
    finding = run_check(register_sleeping(), name, causal=True)
    assert not finding.passed
    assert finding.where.startswith("the values stage 'sleeping': it gives other numbers for some tokens")


@pytest.mark.usefixtures("own_stages", "own_checks")
def test_a_check_of_ones_own_may_ask_for_moved_parameters() -> None:
    line = register_sleeping()
    taps = []

    def look(subject: Subject) -> None:
        taps.append(subject.parameters["sleeping_w"][..., 1])
        taps.append(subject.resize(num_heads=4).parameters["sleeping_w"][..., 1])

    check("plain look")(look)
    check("moved look", moves_parameters=True)(look)
    attnlab.audit(line, checks=["plain look", "moved look"])
    assert [bool(tap.any()) for tap in taps] == [False, False, True, True]


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("is_single_value", [False, True])
def test_parameters_are_moved_within_their_range_or_the_finding_says_so(is_single_value: bool) -> None:
    @stage("bounded")
    @dataclass(frozen=True)
    class Bounded(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"t": Parameter((dims.num_heads,), 0.0, 0.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            t = p["t"][:, None, None]
            # Real for t ≥ 0, or for t = 0 alone.
            root = t.sqrt() + (-t).sqrt() if is_single_value else t.sqrt()
            return scores.sigmoid() * (1 + root)

    finding = run_check("dot | bounded", "prefix", causal=True)
    assert finding.passed, finding.sentence
    assert any("void" in part.note for part in finding.parts) == is_single_value
