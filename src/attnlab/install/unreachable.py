"""Models that compute attention by themselves, not through transformers' AttentionInterface, and whose line is known:
BLOOM, MPT and Falcon. `install` refuses them; `describe` reads their settings."""

import math
from collections.abc import Callable
from typing import Any

from transformers import PreTrainedModel

from attnlab.mechanisms import Mechanism, parse_mechanism

Remarks = dict[str, None]


def describe_unreachable(body: PreTrainedModel, remarks: Remarks) -> Mechanism | None:
    """Return the mechanism of such a model; None if it is none of those that are known."""
    for module in body.modules():
        describe: Callable[[Any, Any, Remarks], list[str]] | None = KNOWN.get(type(module).__name__)
        if describe is not None:
            return parse_mechanism(" | ".join(describe(module, body.config, remarks)))
    return None


def _describe_bloom(module: Any, config: Any, remarks: Remarks) -> list[str]:
    return ["dot", "softmax", "alibi"]


def _describe_mpt(module: Any, config: Any, remarks: Remarks) -> list[str]:
    settings, num_heads = config.attn_config, module.n_heads
    score = "dot" if settings.softmax_scale is None else f"dot(scale={float(settings.softmax_scale)!r})"
    if settings.clip_qkv:
        remarks[f"its projections, clipped at {settings.clip_qkv}"] = None
    # MPT orders the slopes differently if the number of heads is no power of 2.
    if settings.alibi_bias_max == 8 and math.log2(num_heads).is_integer():
        return [score, "softmax", "alibi"]
    remarks[f"its ALiBi, whose slopes for {num_heads} heads and a bias of {settings.alibi_bias_max} are its own"] = None
    return [score, "softmax"]


def _describe_falcon(module: Any, config: Any, remarks: Remarks) -> list[str]:
    stages = ["dot", "softmax"]
    if config.alibi:
        # It is added before the division by √head_dim, with slopes rounded to bf16.
        remarks["its ALiBi, which is divided by √head_dim with the scores and has slopes rounded to bf16"] = None
    else:
        settings = dict(config.rope_parameters)
        if settings.get("rope_type", "default") == "default":
            stages.append(f"rope(base={float(settings['rope_theta'])!r})")
        else:
            remarks[f"a rotation of type '{settings['rope_type']}'"] = None
    if module.num_kv_heads != module.num_heads:
        stages.append(f"heads(kv={module.num_kv_heads})")
    return stages


KNOWN: dict[str, Callable[[Any, Any, Remarks], list[str]]] = {
    "BloomAttention": _describe_bloom, "MptAttention": _describe_mpt, "FalconAttention": _describe_falcon,
}  # fmt: skip
"""Attention modules of transformers that do not call the interface, by their class."""
