"""Tiny models in which a mixer is audited, since a mixer exists in a model only."""

from typing import Any

import torch
import transformers
from torch import nn

from attnlab.install import install
from attnlab.mechanisms import Mechanism

SIZES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip


def build_with_mixer(mechanism: Mechanism, causal: bool, seed: int) -> nn.Module:
    """Build a GPT-2 with a mixer, or a BERT if it need not be causal."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any
        if causal:
            model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SIZES))  # type: ignore[no-untyped-call]
        else:
            model = transformers.BertModel(transformers.BertConfig(**SIZES, intermediate_size=64))  # type: ignore[no-untyped-call]
    installed: nn.Module = install(model.eval(), mechanism, seed=seed)
    return installed
