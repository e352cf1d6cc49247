"""Tiny models to audit, as they come and with a careless attention in them."""

from collections.abc import Callable
from typing import Any

import torch
import transformers as library
from torch import Tensor, nn

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


def make_whole_mask(*arguments: Any, **more: Any) -> Any:
    """Make a mask even if the model could do without one."""
    from transformers.masking_utils import sdpa_mask

    return sdpa_mask(*arguments, **{**more, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})
