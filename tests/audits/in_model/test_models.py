"""Audits of whole models: as they come, sound; with a careless attention in them, found out."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers as library
from torch import Tensor, nn

import attnlab
from attnlab.audits import Finding, check
from attnlab.audits.in_model import ModelSubject

transformers: Any = library  # most of its constructors have no types

SMALL = {"vocab_size": 48, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BERT = {
    **SMALL, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 64,
}  # fmt: skip
BART = {
    **SMALL, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "decoder_start_token_id": 1, "forced_eos_token_id": None,
}  # fmt: skip


def gpt2(**more: Any) -> nn.Module:
    torch.manual_seed(0)
    config = transformers.GPT2Config(**SMALL, n_embd=32, n_layer=2, n_head=2, n_positions=64, **more)
    model: nn.Module = transformers.GPT2LMHeadModel(config)
    return model


def llama() -> nn.Module:
    model: nn.Module = transformers.LlamaForCausalLM(transformers.LlamaConfig(**BERT, num_key_value_heads=1))
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "GPT-2": gpt2,
    "Llama": llama,
    "BERT": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**BERT)),
    "BERT as decoder": lambda: transformers.BertLMHeadModel(transformers.BertConfig(**BERT, is_decoder=True)),
    "RoBERTa": lambda: transformers.RobertaForMaskedLM(transformers.RobertaConfig(**BERT)),
    "BERT for answers": lambda: transformers.BertForQuestionAnswering(transformers.BertConfig(**BERT)),
    "BART": lambda: transformers.BartForConditionalGeneration(transformers.BartConfig(**BART)),
}
LOWEST = torch.finfo(torch.float32).min
CAUSAL = {"GPT-2", "Llama", "BERT as decoder", "BART"}


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


def plain(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **more: Any) -> tuple[Tensor, None]:
    """Attend as one would write it in an afternoon: with the mask, if one comes."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, LOWEST) if mask.dtype == torch.bool else scores + mask
    return (scores.softmax(-1) @ v).transpose(1, 2).contiguous(), None


def with_attention(name: str, mask_function: Callable[..., Any] | None) -> nn.Module:
    """Return a GPT-2 with a custom attention, and what makes masks for it, if anything does."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(name, plain)
    if mask_function is not None:
        AttentionMaskInterface.register(name, mask_function)
    model = gpt2()
    model.set_attn_implementation(name)  # type: ignore[operator]
    return model


def test_a_custom_attention_without_a_mask_function_is_caught() -> None:
    audit = attnlab.audit(with_attention("afternoon", None))
    leak = audit.findings["causal leak"]
    assert not leak.passed
    assert "no mask function" in leak.where
    assert not audit.findings["prefix consistency"].passed
    assert any(size > 0 for i, row in enumerate(leak.data["map"]) for size in row[i + 1 :])


def test_a_mask_that_is_skipped_where_there_is_no_padding_is_caught() -> None:
    from transformers.masking_utils import sdpa_mask

    audit = attnlab.audit(with_attention("evening", sdpa_mask))
    leak = audit.findings["causal leak"]
    assert not leak.passed
    failed = {part.name for part in leak.parts if not part.passed}
    assert any("no mask" in name for name in failed)
    assert not any("padding" in name for name in failed)


def whole_mask(*arguments: Any, **more: Any) -> Any:
    """Make a mask also where the model could do without."""
    from transformers.masking_utils import sdpa_mask

    return sdpa_mask(*arguments, **{**more, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})


def test_a_mask_that_is_always_made_is_sound() -> None:
    audit = attnlab.audit(with_attention("morning", whole_mask))
    assert audit.passed, str(audit)


def test_padding_that_becomes_nan_and_spreads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.LOWEST", -torch.inf)
    finding = attnlab.audit(with_attention("noon", whole_mask)).findings["padding"]
    assert not finding.passed
    assert "not a number" in finding.sentence


class Forgetful(nn.Module):
    """A layer that adds the mean over the whole sequence, as a careless normalisation would."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        return out + x.mean(1, keepdim=True)


def test_a_leak_outside_attention_is_caught_too() -> None:
    model: Any = gpt2()
    model.transformer.ln_f = Forgetful(model.transformer.ln_f)
    audit = attnlab.audit(model)
    assert {finding.name for finding in audit.failed} == {
        "causal leak", "prefix consistency", "padding and batch invariance",
    }  # fmt: skip


def test_a_parameter_without_gradient_is_named() -> None:
    model: Any = gpt2()
    model.transformer.extra = nn.Parameter(torch.zeros(3))
    finding = attnlab.audit(model).findings["gradient flow"]
    assert not finding.passed
    assert finding.where == "transformer.extra"
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    assert not attnlab.audit(model, checks=["gradient"]).passed


def test_numbers_that_are_not_finite_are_counted() -> None:
    model: Any = gpt2()
    with torch.no_grad():
        model.transformer.ln_f.weight[0] = torch.nan
    assert not attnlab.audit(model, checks=["numerics"]).passed


def test_causality_can_be_said_where_a_model_does_not() -> None:
    bert = MODELS["BERT"]()
    audit = attnlab.audit(bert, causal=True, checks=["leak"])
    assert not audit.passed
    assert attnlab.audit(bert, causal=False).passed


def test_a_head_with_one_answer_for_a_sequence_is_left_out() -> None:
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))
    audit = attnlab.audit(model)
    assert audit.passed
    assert audit.subject.startswith("BertModel")


@pytest.mark.usefixtures("own_checks")
def test_a_check_of_models_is_a_function_and_a_decorator() -> None:
    @check("few parameters", on="model")
    def few_parameters(subject: ModelSubject) -> Finding:
        count = sum(p.numel() for p in subject.model.parameters())
        return Finding("few parameters", count < 1e6, count, 1e6, "The model is small.")

    assert list(attnlab.audit(gpt2()).findings)[-1] == "few parameters"
    assert "few parameters" not in attnlab.audit("baseline", checks=["weights"]).findings


def test_an_audit_is_a_record_with_a_picture() -> None:
    audit = attnlab.audit(gpt2())
    assert audit.record()["subject"].startswith("GPT2LMHeadModel")
    assert attnlab.charts.svg(audit.figure()).startswith("<svg")
    assert dataclasses.is_dataclass(audit)


def test_a_model_in_half_precision_is_not_excused_by_its_rounding() -> None:
    model: Any = with_attention("dusk", None)
    audit = attnlab.audit(model.bfloat16())
    assert {"causal leak", "prefix consistency"} <= {finding.name for finding in audit.failed}
    assert attnlab.audit(gpt2().bfloat16()).passed


def test_a_model_that_says_nothing_of_causality_is_tried() -> None:
    config = transformers.BloomConfig(**SMALL, hidden_size=32, n_layer=1, n_head=2)
    audit = attnlab.audit(transformers.BloomModel(config), checks=["leak", "prefix"])
    assert audit.causal
    assert audit.passed, str(audit)


def test_an_encoder_that_ignores_its_padding_is_caught() -> None:
    model: Any = transformers.BartForConditionalGeneration(transformers.BartConfig(**BART, init_std=0.2))
    inner = model.model.encoder.forward
    model.model.encoder.forward = lambda *given, **more: inner(*given, **{**more, "attention_mask": None})
    finding = attnlab.audit(model, checks=["padding"]).findings["padding"]
    assert not finding.passed
    assert "the encoder's padding" in finding.sentence


def test_a_leak_beyond_a_short_sequence_is_caught() -> None:
    model: Any = gpt2()
    norm = model.transformer.ln_f

    class Late(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = norm(x)
            return out if x.shape[1] <= 32 else out + x.mean(1, keepdim=True)

    model.transformer.ln_f = Late()
    assert not attnlab.audit(model, checks=["leak"]).passed


def test_an_audit_works_whatever_the_caller_has_switched() -> None:
    model = gpt2()
    with torch.no_grad():
        assert attnlab.audit(model).passed
        assert attnlab.audit("baseline", checks=["leak", "gradient"]).passed
    with torch.autocast("cpu", torch.bfloat16):
        assert attnlab.audit("baseline", checks=["leak", "equivalences"]).passed
