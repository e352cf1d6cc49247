"""Tiny random Hugging Face models with the head a task asks for."""

from typing import Any

import torch
import transformers

SIZES: dict[str, dict[str, Any]] = {
    "bert": {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 512
    },
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 512},
}  # fmt: skip


def build(kind: str, task: Any, tokenizer: Any = None, *, seed: int = 0) -> Any:
    """Build a tiny model of a kind with a task's head; its weights are large, so that attention is not uniform."""
    settings = {**SIZES[kind], **task.head_settings}
    if tokenizer is not None:
        settings |= {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
        if tokenizer.pad_token_id is None:
            settings["pad_token_id"] = tokenizer.eos_token_id
    config = transformers.AutoConfig.for_model(kind, bos_token_id=0, eos_token_id=0, **settings)
    torch.manual_seed(seed)
    model = getattr(transformers, task.head).from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(6)
    return model.eval()


def batches(task: Any, features: list[Any], size: int = 3) -> list[Any]:
    """Cut features into batches."""
    return [task.collate(features[start : start + size]) for start in range(0, len(features), size)]
