"""Tiny models of the families whose line `describe` knows, in fp64, and what their line is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from tests.install.models import GPT2, HEADS, SHARED, WIDTH, padding, tokens

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Family:
    """A kind of model: its config beyond SHARED, the class of its head, its line, and what describe warns of."""

    kind: str
    line: str
    changes: dict[str, Any] = field(default_factory=dict)
    head: Any = AutoModelForCausalLM
    remark: str | None = None


GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 500000.0}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
T5 = {
    "d_model": WIDTH, "d_kv": 8, "num_layers": 2, "num_heads": HEADS, "d_ff": 48, "decoder_start_token_id": 1,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16, "dropout_rate": 0.0,
}  # fmt: skip
SINKS = "dot | softmax(sink=learned)"
CAPPED = "dot(scale=0.0625) | cap(50) | softmax"

FAMILIES = {
    "llama": Family("llama", "dot | softmax | rope(base=500000) | heads(kv=2)",
                    {**GROUPED, "rope_parameters": PLAIN_ROPE}),
    "llama3 rope": Family("llama", "dot | softmax | heads(kv=2)", {**GROUPED, "rope_parameters": LLAMA3},
                          remark="a rotation of type 'llama3'"),
    "qwen3": Family("qwen3", "dot | softmax | norm(rms, gain=channel) | rope | heads(kv=2)", GROUPED),
    "gemma2": Family("gemma2", f"{CAPPED} | window(4) | rope | heads(kv=2) @ 0 every 2; {CAPPED} | rope | heads(kv=2) "
                     "@ 1 every 2", {**GROUPED, "sliding_window": 4, "num_hidden_layers": 4}),
    "gemma3": Family("gemma3_text", "dot(scale=0.0625) | softmax | window(4) | norm(rms, gain=channel) | rope | "
                     "heads(kv=2)", {**GROUPED, "sliding_window": 4}),
    "gpt_oss": Family("gpt_oss", f"{SINKS} | window(4) | rope(base=500000) | heads(kv=2) @ 0; "
                      f"{SINKS} | rope(base=500000) | heads(kv=2) @ 1",
                      {**GROUPED, **EXPERTS, "sliding_window": 4, "rope_parameters": PLAIN_ROPE}),
    "gpt_oss yarn": Family("gpt_oss", f"{SINKS} | window(4) | heads(kv=2) @ 0; {SINKS} | heads(kv=2) @ 1",
                           {**GROUPED, **EXPERTS, "sliding_window": 4}, remark="a rotation of type 'yarn'"),
    "mistral window": Family("mistral", "dot | softmax | window(4) | rope | heads(kv=2)",
                             {"num_key_value_heads": 2, "sliding_window": 4}),
    "granite": Family("granite", "dot(scale=0.3) | softmax | rope | heads(kv=2)",
                      {"num_key_value_heads": 2, "attention_multiplier": 0.3}),
    "gpt_neox": Family("gpt_neox", "dot | softmax | rope(share=0.25)"),
    "gpt2": Family("gpt2", "dot | softmax", GPT2),
    "gpt2 scaled by layer": Family("gpt2", f"dot | softmax @ 0; dot(scale={8**-0.5 / 2!r}) | softmax @ 1",
                                   {**GPT2, "scale_attn_by_inverse_layer_idx": True}),
    "opt": Family("opt", "dot | softmax", {"ffn_dim": 48, "word_embed_proj_dim": WIDTH}),
    "bert": Family("bert", "dot | softmax", head=AutoModelForMaskedLM),
    "modernbert": Family("modernbert", "dot | softmax | rope(base=160000) @ 0; dot | softmax | window(3) | rope @ 1",
                         {"global_attn_every_n_layers": 2, "local_attention": 4}, AutoModelForMaskedLM),
    "t5": Family("t5", "dot(scale=1) | softmax | relative(buckets=8, max_distance=16)", T5, AutoModelForSeq2SeqLM),
    "umt5": Family("umt5", "dot(scale=1) | softmax | relative(buckets=8, max_distance=16)", T5, AutoModelForSeq2SeqLM),
}  # fmt: skip
"""Families that call transformers' AttentionInterface."""

FALCON_ALIBI = "its ALiBi, which is divided"
BRIDGED = {
    "bloom": Family("bloom", "dot | softmax | alibi"),
    "mpt": Family("mpt", "dot | softmax | alibi"),
    "mpt clipped": Family(
        "mpt", "dot(scale=0.3) | softmax | alibi", {"attn_config": {"clip_qkv": 0.5, "softmax_scale": 0.3}},
        remark="its projections, clipped at 0.5",
    ),
    "mpt of 6 heads": Family(
        "mpt", "dot | softmax", {"hidden_size": 48, "num_attention_heads": 6},
        remark="whose slopes are in another order",
    ),
    "falcon": Family("falcon", "dot | softmax | rope | heads(kv=1)", {"alibi": False}),
    "falcon grouped": Family(
        "falcon", "dot | softmax | rope | heads(kv=2)",
        {"alibi": False, "new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "falcon alibi": Family("falcon", "dot | softmax | heads(kv=1)", {"alibi": True}, remark=FALCON_ALIBI),
    "falcon alibi by head": Family(
        "falcon", "dot | softmax", {"alibi": True, "multi_query": False}, remark=FALCON_ALIBI
    ),
}  # fmt: skip
"""Families that compute attention by themselves, and have a bridge."""


def build_family(family: Family, seed: int = 0) -> Any:
    """Build a tiny model in fp64, all of whose weights are random; call it inside `fp32_as_fp64`."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family.kind, **{**SHARED, **family.changes})
    options = {"experts_implementation": "eager"} if "gpt_oss" in family.kind else {}  # the fused one has no fp64
    # With "eager" Falcon adds its ALiBi twice: to its masks, and to the scores.
    implementation = "sdpa" if family.changes.get("alibi") else "eager"
    model = family.head.from_config(config, attn_implementation=implementation, **options).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def compute_logits(model: Any, side: str) -> Tensor:
    """Return the logits of the real tokens of a batch that is padded on this side."""
    mask = padding(side)
    inputs = {"decoder_input_ids": tokens()[:, :5]} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        logits: Tensor = model(input_ids=tokens(), attention_mask=mask, **inputs).logits
    return logits if mask is None or inputs else logits[mask.bool()]


def generate(model: Any) -> tuple[Tensor, Tensor]:
    """Return what a model generates with a cache from prompts padded on the left, and its logits."""
    out = model.generate(
        tokens(), attention_mask=padding("left"), max_new_tokens=12, min_new_tokens=12, do_sample=False,
        pad_token_id=0, return_dict_in_generate=True, output_logits=True,
    )  # fmt: skip
    return out.sequences, torch.stack(out.logits)
