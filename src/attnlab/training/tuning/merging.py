"""LoRA adapters added into the weights they stand beside: W + (alpha / rank)·B A, after which none is left."""

from __future__ import annotations

from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel

from attnlab.install.saving import UNSAVED


def merge_lora(model: PreTrainedModel) -> int:
    """Merge a model's adapters in place, and return how many; the model computes the same but for rounding."""
    adapted = [(name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer)]
    for name, module in adapted:
        assert isinstance(module, nn.Module)
        module.merge()
        path, _, own = name.rpartition(".")
        setattr(model.get_submodule(path), own, module.base_layer)
    if adapted:
        vars(model).pop(UNSAVED, None)
    return len(adapted)
