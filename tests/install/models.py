"""Tiny Hugging Face models of different structure, with seeded weights: what the tests of this room install into."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    EncoderDecoderConfig,
    EncoderDecoderModel,
)

from attnlab.mechanisms import parse_line

VOCABULARY, WIDTH, HEADS, LENGTH = 64, 32, 4, 9

SHARED: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS,
    "intermediate_size": 48, "max_position_embeddings": 66, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GPT2 = {"n_embd": WIDTH, "n_layer": 2, "n_head": HEADS, "n_positions": 66}
BART = {
    "d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
}  # fmt: skip

SMALL: dict[str, Any] = {
    "vocab_size": 48, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1,
}  # fmt: skip
"""The sizes of an encoder and a decoder of one layer each."""

BRIDGED: dict[str, tuple[str, dict[str, Any]]] = {
    "bloom": ("bloom", {}),
    "falcon": ("falcon", {"alibi": False}),
    "mpt": ("mpt", {}),
}
"""Models that compute attention by themselves."""

STRUCTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {}),
    "bert decoder": ("bert", {"is_decoder": True}),
    "roberta": ("roberta", {"pad_token_id": 1}),
    "roberta-prelayernorm": ("roberta-prelayernorm", {"pad_token_id": 1}),
    "camembert": ("camembert", {"pad_token_id": 1}),
    "electra": ("electra", {"embedding_size": 16}),
    "albert": ("albert", {"embedding_size": 16}),
    "distilbert": ("distilbert", {"dim": WIDTH, "n_layers": 2, "n_heads": HEADS, "hidden_dim": 48}),
    "modernbert": ("modernbert", {"global_attn_every_n_layers": 2, "local_attention": 4}),
    "gpt2": ("gpt2", GPT2),
    "gpt2 scaled by layer": ("gpt2", {**GPT2, "scale_attn_by_inverse_layer_idx": True}),
    "opt": ("opt", {"ffn_dim": 48, "word_embed_proj_dim": WIDTH}),
    "llama": ("llama", {"num_key_value_heads": HEADS}),
    "llama grouped": ("llama", {"num_key_value_heads": 2}),
    "mistral window": ("mistral", {"num_key_value_heads": 2, "sliding_window": 4}),
    "qwen2": ("qwen2", {"num_key_value_heads": 2}),
    "qwen3": ("qwen3", {"num_key_value_heads": 2, "head_dim": 8}),
    "gemma3 windows": ("gemma3_text", {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": 4}),
    "granite": ("granite", {"num_key_value_heads": 2, "attention_multiplier": 0.3}),
    "phi3 fused": ("phi3", {"num_key_value_heads": 2}),
    "gpt-neox": ("gpt_neox", {}),
    "bart": ("bart", BART),
    **BRIDGED,
}
"""Model types and what their configs say beyond SHARED."""

REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "gptj": ("gptj", {**GPT2, "rotary_dim": 4}),
}
"""Models that cannot take a mechanism."""

INTERLEAVED = {"gpt-bigcode": ("gpt_bigcode", {**GPT2, "multi_query": False})}
"""A fused projection laid out head by head: q k v, q k v, …"""

STARTED = {
    "bert": AutoModelForMaskedLM,
    "roberta": AutoModelForMaskedLM,
    "gpt2": AutoModelForCausalLM,
    "llama": AutoModelForCausalLM,
}
"""The four architectures that every mechanism of the catalog goes into, with a head that has a loss."""


def config(name: str, **changes: Any) -> Any:
    """Return the tiny config of a structure."""
    kind, own = (STRUCTURES | REFUSED | INTERLEAVED)[name]
    return AutoConfig.for_model(kind, **{**SHARED, **own, **changes})


def build(name: str, head: Any = AutoModel, *, seed: int = 0, **changes: Any) -> Any:
    """Build a tiny model; its weights are larger than at the usual start, so that attention is not uniform."""
    torch.manual_seed(seed)
    model = head.from_config(config(name, **changes), attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(3)
    return model.eval()


def with_loss(name: str, *, seed: int = 0, **changes: Any) -> Any:
    """Build one of the four started architectures with the head that has a loss."""
    return build(name, STARTED[name], seed=seed, **changes)


def num_layers_for(line: str) -> int:
    """Return two layers, or as many as a line by layer repeats after."""
    return getattr(parse_line(line), "every", None) or 2


def deep_enough(name: str, line: str, **changes: Any) -> Any:
    """Build one of the four started architectures with as many layers as a line needs."""
    return with_loss(name, num_hidden_layers=num_layers_for(line), **changes)


def pair() -> Any:
    """Build a BERT that decodes with cross-attention to another BERT."""
    torch.manual_seed(0)
    both = EncoderDecoderConfig.from_encoder_decoder_configs(
        config("bert"), config("bert", is_decoder=True, add_cross_attention=True)
    )
    kind: Any = EncoderDecoderModel
    model = kind(both).eval()
    model.config.decoder_start_token_id, model.config.pad_token_id = 1, 0
    model.set_attn_implementation("eager")
    return model


def tokens(batch: int = 3, length: int = LENGTH) -> Tensor:
    """Draw token ids, the same each time."""
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def padding(side: str) -> Tensor | None:
    """Return an attention mask for `tokens()`: of its second sequence only six are real."""
    if side == "none":
        return None
    mask = torch.ones(3, LENGTH, dtype=torch.long)
    mask[1, 6:] = 0
    return mask.flip(1) if side == "left" else mask


def twin(model: Any) -> Any:
    """Copy a model."""
    return copy.deepcopy(model)


def learned(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the parameters a mechanism brought along."""
    return {name: p for name, p in model.named_parameters() if ".attnlab." in name}


def calm(model: Any) -> Any:
    """Take dropout out of a model, and let it train."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.config.use_cache = False
    return model.train()
