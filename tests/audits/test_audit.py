"""`attnlab.audit`: what it takes, what it gives back, and a check of one's own."""

import json
import math

import pytest
import torch

import attnlab
from attnlab import audits
from attnlab.audits import Finding, FindingPart, Mode, Subject, check
from attnlab.audits.value_path import variance
from attnlab.errors import AttnlabError, MechanismError, RequestError

QUICK = ["weights", "gradient"]


def test_findings_say_all_that_is_needed() -> None:
    audit = attnlab.audit("dot | softmax | mask(after)", causal=True)
    assert not audit.passed
    finding = audit.findings["causal leak"]
    assert (finding.passed, finding.kind, finding.verdict) == (False, "leak", "FAILED")
    assert finding.figure > finding.bound  # type: ignore[operator]
    assert "future" in finding.sentence
    assert "mask(after)" in finding.where
    assert "mask(after)" in str(audit)


def test_a_finding_is_found_by_any_part_of_its_name_that_fits_it_alone() -> None:
    findings = attnlab.audit("baseline", checks=QUICK).findings
    assert findings["gradient"] is findings["gradient flow"] is findings["gradient_flow"]
    assert list(findings) == ["gradient flow", "weights"]
    with pytest.raises(RequestError, match="no check is named 'leak'; there are gradient flow, weights"):
        findings["leak"]
    with pytest.raises(KeyError):
        findings["leak"]
    with pytest.raises(RequestError, match="could be any of"):
        findings["g"]
    assert findings.get("value path") is None


def test_the_record_is_json() -> None:
    record = attnlab.audit("dot | argmax", checks=["gradient", "magnitude", "leak"]).record()
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again["passed"] is False
    assert again["findings"]["gradient flow"]["verdict"] == "FAILED"
    assert again["findings"]["gradient flow"]["kind"] == "gradients"
    assert len(again["findings"]["causal leak"]["data"]["map"]) == 24


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
    first = attnlab.audit("additive", causal=True, checks=["leak", "magnitude", "numerics"])
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    again = attnlab.audit("additive", causal=True, checks=["leak", "magnitude", "numerics"])
    assert first.record()["findings"] == again.record()["findings"]


def test_a_part_that_is_not_a_number_fails_and_is_the_worst() -> None:
    parts = [FindingPart("a", 5.0, 1.0), FindingPart("b", math.nan, 1.0), FindingPart("c", 1e9)]
    assert [part.passed for part in parts] == [False, False, True]
    assert audits.finding.worst(parts).name == "b"


def test_saturation_is_reported_for_softmax_and_not_for_cosine() -> None:
    left = {}
    for line in ("dot | softmax", "cosine | softmax"):
        finding = attnlab.audit(line, checks=["gradient"]).findings["gradient"]
        left[line] = finding.parts[-1].figure
        assert finding.passed
        assert ("saturate" in finding.sentence) == (line == "dot | softmax")
    assert left["dot | softmax"] < 1e-3 < left["cosine | softmax"]


def test_variance_on_the_value_path_can_fall() -> None:
    x = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = variance(-0.5 * x, x.relu(), 0.5)
    assert found.before == pytest.approx(0.250, abs=2e-3)
    assert found.after == pytest.approx(0.085, abs=2e-3)
    assert found.predicted == pytest.approx(found.after, rel=1e-12)
    assert found.covariance == pytest.approx(-0.25, abs=2e-3)
    assert found.trend == "falls"


def test_the_bypass_weighs_less_in_wider_layers() -> None:
    finding = attnlab.audit("value-bypass", checks=["value path"]).findings["value path"]
    rows = finding.data["bypass(alpha=0.5)"]
    shares = [rows[width]["share"] for width in ("64", "256", "1024")]
    assert shares == sorted(shares, reverse=True)
    for row in rows.values():
        assert row["predicted"] == pytest.approx(row["after"], rel=1e-9)
        # α² E[R²] is 1/8 for a ReLU of unit-variance inputs, whatever the width.
        assert row["share"] * (row["after"] + 0.04) == pytest.approx(0.125, rel=0.1)


def test_weights_are_described() -> None:
    def numbers(line: str) -> dict[str, float]:
        return dict(attnlab.audit(line, causal=True, checks=["weights"]).findings["weights"].data)

    softmax, linear, sparse, zero = map(numbers, ("baseline", "linear", "sparsemax", "zero-mask"))
    assert softmax["smallest sum"] == pytest.approx(1) == softmax["largest sum"]
    assert (softmax["negative"], softmax["exactly zero"]) == (0, 0)
    assert linear["negative"] == pytest.approx(0.5, abs=0.05)
    assert sparse["exactly zero"] > 0.5
    hidden = "share on tokens that may not be seen"
    assert softmax[hidden] == pytest.approx(0, abs=1e-12)
    assert zero[hidden] > 0.3


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
    assert list(attnlab.audit("hard").findings)[-1] == "small outputs"
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
    assert finding.where.startswith("test_audit.py, line ")
    assert audit.findings["weights"].passed
    assert not audit.passed


def test_the_picture_shows_leaks_in_their_own_colour() -> None:
    checks = ["leak", "magnitude"]
    leaking, sound = (attnlab.audit(line, causal=True, checks=checks).figure() for line in ("leaking-mask", "baseline"))
    kinds = [{value["whose"] for value in spec["concat"][0]["data"]["values"]} for spec in (leaking, sound)]
    assert kinds == [{"allowed", "later token: a leak"}, {"allowed"}]
    assert len(sound["concat"]) == 2
    assert attnlab.charts.svg(leaking).startswith("<svg")
    only = attnlab.audit("baseline", causal=False, checks=["magnitude"]).figure()
    assert len(only["concat"]) == 1
    with pytest.raises(RequestError, match="this audit has none of them"):
        attnlab.audit("baseline", checks=["cost"]).figure()
