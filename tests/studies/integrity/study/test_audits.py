"""Arms that see future tokens are found by the audits of their mechanism alone and in a model."""

from pathlib import Path
from typing import Any

import pytest

from attnlab.audits import Audit, Finding, audit
from attnlab.install import mechanism_of
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.integrity.study.audits import UNTYPED, read_kind
from tests.studies.samples import quiet

from .recorded_study import RecordedStudy, faults, notes, sentence, text_study


@pytest.mark.parametrize("where", ["cosine | softmax", "cosine | softmax in tiny (0)"], ids=["alone", "installed"])
def test_a_leaking_arm_is_a_fault_and_other_failed_audits_are_said(where: str, study: RecordedStudy) -> None:
    study.plan({"better": "its audit finds a leak"}, {where: "causal leak", "dot | softmax": "numerics"})
    found = study.findings()
    assert (faults(found), notes(found)) == (["a leaking arm"], ["a failed audit"])
    assert f"arm 'better': It fails: causal leak (audited: {where})" in sentence(found, "a leaking arm")


@pytest.mark.usefixtures("here")
def test_a_leak_of_the_installed_model_alone_makes_an_arm_leak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[str, bool]]()

    def audited(model: Any, causal: bool, checks: Any, progress: Any) -> Audit:
        found = audit(model, causal=causal, checks=["causal leak"])
        line = str(mechanism_of(model))
        asked.append((line, causal))
        if line == "dot | softmax":
            return found
        leak = Finding("causal leak", False, 1.0, 0.0, "The model sees the future.", kind="leak")
        return Audit(found.subject, causal, type(found.findings)([leak]), 0.0)

    monkeypatch.setattr("attnlab.studies.plan.installed_arms.audit", audited)
    made = text_study(tmp_path, {"dot": "dot | softmax", "odd": "cosine | softmax"}, has_leaking=False)
    said = list[str]()
    conclusion = made.run(tmp_path / "out", say=said.append)
    assert asked == [("dot | softmax", True), ("cosine | softmax", True)]
    assert "not trained, since they have access to future tokens: odd (has_leaking = true trains them)" in said
    assert conclusion.num_runs == 2
    with open_record(tmp_path / "out") as record:
        alone, installed = record.audits["odd"]
        assert alone == "cosine | softmax"
        assert installed.startswith("cosine | softmax in tiny (")
        sentence = record.audit_of(installed)[0]["sentence"]
        assert sentence.startswith("Audited was GPT2LMHeadModel, ")
        assert sentence.endswith("; its vocabulary has 128 tokens, and that of the runs another number.")
        assert [one["passed"] for one in record.audit_of(installed)] == [True, False]
    made.run(tmp_path / "out", say=quiet)
    assert len(asked) == 2  # once a study


@pytest.mark.usefixtures("here")
def test_an_arm_that_cannot_be_built_is_said_to_be_unaudited_and_costs_itself_alone(tmp_path: Path) -> None:
    odd = {"mechanism": "cosine | softmax", "set": {"config.n_embd": 15}}
    said = list[str]()
    made = text_study(tmp_path, {"dot": "dot | softmax", "odd": odd}, seeds=[1])
    conclusion = made.run(tmp_path / "out", say=said.append)
    assert any("cannot be audited: no model can be built from this config" in line for line in said)
    assert list(conclusion.failed) == ["text, tiny, odd, seed 1"]
    assert "a missing audit" in notes(tuple(conclusion.findings))


def test_a_finding_of_an_older_ledger_has_a_kind() -> None:
    assert [read_kind({"name": name}) for name in UNTYPED] == ["leak", "installed_model"]
    assert read_kind({"name": "a check of a user", "kind": "leak"}) == "leak"
    assert read_kind({"name": "numerics"}) == "other"
