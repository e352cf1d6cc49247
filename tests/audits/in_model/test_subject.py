"""A model under audit: sound as it comes, causal or not, in any precision and any state of torch."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

import attnlab
from attnlab.audits import Finding, check
from attnlab.audits.audit import choose_checks
from attnlab.audits.in_model import ModelSubject

from ..faults import register_sleeping
from .models import BERT, CAUSAL, MODELS, SMALL, gpt2, transformers, with_attention


@pytest.mark.parametrize("name", MODELS)
def test_a_model_as_it_comes_is_sound(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]()
    model.train()
    audit = attnlab.audit(model)
    assert audit.passed, str(audit)
    assert audit.causal == (name in CAUSAL)
    assert ("causal leak" in audit.findings) == (name in CAUSAL)
    assert all(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_causality_can_be_said_where_a_model_does_not() -> None:
    bert = MODELS["BERT"]()
    audit = attnlab.audit(bert, causal=True, checks=["leak"])
    assert not audit.passed
    assert attnlab.audit(bert, causal=False, checks=["leak", "numerics"]).passed


def test_a_head_with_one_answer_for_a_sequence_is_left_out() -> None:
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))
    audit = attnlab.audit(model, checks=["padding", "gradient"])
    assert audit.passed
    assert audit.subject.startswith("the BertModel in BertForSequenceClassification, ")


@pytest.mark.usefixtures("own_checks")
def test_a_check_of_models_is_a_function_and_a_decorator() -> None:
    @check("few parameters", on="model")
    def few_parameters(subject: ModelSubject) -> Finding:
        count = sum(p.numel() for p in subject.model.parameters())
        return Finding("few parameters", count < 1e6, count, 1e6, "The model is small.")

    assert list(attnlab.audit(gpt2(), checks=["few", "numerics"]).findings)[-1] == "few parameters"
    assert choose_checks("model", None, train=False)[-1].name == "few parameters"
    assert "few parameters" not in attnlab.audit("baseline", checks=["weights"]).findings


def test_an_audit_is_a_record_with_a_picture() -> None:
    audit = attnlab.audit(gpt2(), checks=["leak", "padding"])
    assert audit.record()["subject"].startswith("GPT2LMHeadModel")
    assert attnlab.charts.svg(audit.figure()).startswith("<svg")
    assert dataclasses.is_dataclass(audit)


def test_a_model_in_half_precision_is_not_excused_by_its_rounding() -> None:
    model: Any = with_attention("dusk", None)
    audit = attnlab.audit(model.bfloat16(), checks=["leak", "prefix"])
    assert {"causal leak", "prefix consistency"} <= {finding.name for finding in audit.failed}
    assert attnlab.audit(gpt2().bfloat16()).passed


def test_a_model_that_says_nothing_of_causality_is_tried() -> None:
    config = transformers.BloomConfig(**SMALL, hidden_size=32, n_layer=1, n_head=2)
    audit = attnlab.audit(transformers.BloomModel(config), checks=["leak", "prefix"])
    assert audit.causal
    assert audit.passed, str(audit)


def test_an_audit_works_whatever_the_caller_has_switched() -> None:
    model = gpt2()
    with torch.no_grad():
        assert attnlab.audit(model, checks=["leak", "gradient"]).passed
        assert attnlab.audit("baseline", checks=["leak", "gradient"]).passed
    with torch.autocast("cpu", torch.bfloat16):
        assert attnlab.audit("baseline", checks=["leak", "equivalences"]).passed


@pytest.mark.usefixtures("own_stages")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_stage_in_a_model_that_is_broken_only_once_it_is_trained_is_found(dtype: torch.dtype) -> None:
    model = attnlab.install(gpt2().to(dtype), register_sleeping())
    before = copy.deepcopy(model.state_dict())
    audit = attnlab.audit(model)
    assert {finding.name for finding in audit.failed} == {"prefix consistency", "padding and batch invariance"}
    assert any("static cache" in part.name and not part.passed for part in audit.findings["prefix"].parts)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.usefixtures("own_stages")
def test_parameters_that_are_made_in_inference_mode_are_moved_too() -> None:
    with torch.inference_mode():
        model = attnlab.install(gpt2(), register_sleeping())
    assert not attnlab.audit(model, checks=["prefix"]).passed


@pytest.mark.usefixtures("mixers")
def test_the_parameters_of_a_mixer_are_moved_too() -> None:
    subject = ModelSubject.create(attnlab.install(gpt2(), "mixer(stepping)"), causal=None)
    before = {name: p.clone() for name, p in subject.model.named_parameters()}
    with subject.moved() as moved:
        changed = {name for name, p in moved.model.named_parameters() if not torch.equal(p, before[name])}
    assert changed
    assert all(".attnlab." in name for name in changed)


@pytest.mark.usefixtures("own_stages", "own_checks")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_model_has_its_own_parameters_again_if_a_check_raises(error: Callable[[], BaseException]) -> None:
    model = attnlab.install(gpt2(), register_sleeping())
    held = {name: (p, p.data_ptr(), p.clone()) for name, p in model.named_parameters()}
    moved: list[str] = []

    @check("explosive", on="model", moves_parameters=True)
    def explosive(subject: ModelSubject) -> Finding:
        moved.extend(name for name, p in subject.model.named_parameters() if not torch.equal(p, held[name][2]))
        raise error()

    try:
        attnlab.audit(model, checks=["explosive"])
    except KeyboardInterrupt:
        assert error is KeyboardInterrupt
    assert [name.rpartition(".")[2] for name in moved] == ["sleeping_w", "sleeping_w"]
    for name, p in model.named_parameters():
        same, place, value = held[name]
        assert p is same
        assert p.data_ptr() == place
        assert torch.equal(p, value)
