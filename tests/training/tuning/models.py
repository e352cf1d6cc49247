"""Tiny models with the heads that tuning tells apart, and what is compared of them."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
)

import attnlab
from attnlab.training.spec import Tuning
from attnlab.training.tuning.apply import apply_tuning
from tests.install.models import build, padding, tokens

HEADS: dict[str, Any] = {
    "classes": AutoModelForSequenceClassification,
    "span": AutoModelForQuestionAnswering,
    "masked": AutoModelForMaskedLM,
    "causal": AutoModelForCausalLM,
}
TARGETS = {"distilbert": ("q_lin", "v_lin"), "modernbert": ("Wqkv",), "albert": ("query", "value")}
"""For architectures that peft has no default targets for."""


def tuned(name: str, head: str, tuning: Tuning, *, line: str = "dot | softmax", seed: int = 0) -> Any:
    """Build a tiny model, install a mechanism, tune it."""
    model = attnlab.install(build(name, HEADS[head]), line)
    apply_tuning(model, tuning, has_new_head=head in ("classes", "span"), seed=seed)
    return model


def way(mode: Any, name: str = "bert") -> Tuning:
    """Return a mode of tuning with small sizes."""
    return Tuning(mode=mode, length=5, rank=4, targets=TARGETS.get(name, ()) if mode == "lora" else ())


def shaken(model: nn.Module, scale: float = 0.5) -> Any:
    """Move all that trains away from its start, so that it matters."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * scale)
    return model


def padded(model: Any) -> dict[str, Tensor]:
    """Return a batch whose second row is six tokens and the model's padding."""
    mask = padding("right")
    assert mask is not None
    return {"input_ids": tokens().masked_fill(mask == 0, model.config.pad_token_id), "attention_mask": mask}


def second_row() -> dict[str, Tensor]:
    """Return the second row of that batch by itself."""
    return {"input_ids": tokens()[1:2, :6], "attention_mask": torch.ones(1, 6, dtype=torch.long)}


def trained_names(model: nn.Module) -> set[str]:
    """Return the names of what trains."""
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}
