"""LoRA through peft, in place: W x + (alpha / rank)·B A x at the linear modules that are its targets (Hu et al. 2022).

B starts at 0, so that nothing changes at first. Targets are looked for in the body alone.
"""

from __future__ import annotations

import math

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as PEFTS_OWN
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from attnlab.errors import TrainingError, closest
from attnlab.install.adapters import check_adapters
from attnlab.install.saving import UNSAVED

from ..spec import Tuning
from .parts import generator_of

ADAPTER = "default"


def add_lora(model: PreTrainedModel, tuning: Tuning, seed: int) -> None:
    """Put adapters on a model's targets; every A starts from the seed and its module's name."""
    targets = find_targets(model, tuning.targets or own_targets(model))
    check_adapters(model, targets.values())
    config = LoraConfig(
        r=tuning.rank, lora_alpha=tuning.alpha, lora_dropout=tuning.dropout, target_modules=list(targets),  # type: ignore[arg-type]
        fan_in_fan_out=any(isinstance(module, Conv1D) for module in targets.values()),
    )  # fmt: skip
    # peft draws every A from torch's generator; the caller's random numbers must not notice.
    with torch.random.fork_rng(devices=[]):
        inject_adapter_in_model(config, model, ADAPTER)
    for name, module in targets.items():
        # peft makes an adapter as if for training, whatever the model is in.
        model.get_submodule(name).train(module.training)
        down = model.get_parameter(f"{name}.lora_A.{ADAPTER}.weight")
        # The body's own name: a module is called alike under every head, and its adapter starts alike.
        own_name = name.removeprefix(f"{model.base_model_prefix}.")
        start = torch.empty(down.shape)
        nn.init.kaiming_uniform_(start, a=math.sqrt(5), generator=generator_of(seed, f"{own_name}.lora_A"))
        with torch.no_grad():
            down.copy_(start)


def own_targets(model: PreTrainedModel) -> tuple[str, ...]:
    """Return what peft adapts in an architecture unless told otherwise."""
    kind = model.config.model_type
    if kind not in PEFTS_OWN:
        raise TrainingError(
            f"peft has no targets of its own for '{kind}'; name them: targets=('…',). The linear modules of this "
            f"{type(model).__name__} are called {', '.join(sorted(linear_names(model)))}"
        )
    return tuple(PEFTS_OWN[kind])


def linear_modules(model: PreTrainedModel) -> dict[str, nn.Module]:
    """Return the linear modules of a model's body by their names in the model."""
    inside = {id(module) for module in model.base_model.modules()}
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and id(module) in inside
    }


def linear_names(model: PreTrainedModel) -> set[str]:
    """Return the last words of the names of linear modules."""
    return {name.rpartition(".")[2] for name in linear_modules(model)}


def find_targets(model: PreTrainedModel, wanted: tuple[str, ...]) -> dict[str, nn.Module]:
    """Return the modules that targets name, by whole names or the ends of them; one that names none is an error."""
    linear = linear_modules(model)
    found: dict[str, nn.Module] = {}
    for target in wanted:
        named = {name: module for name, module in linear.items() if f".{name}".endswith(f".{target}")}
        if not named:
            known = sorted(linear_names(model))
            hint = closest(target, [*known, *linear]) or "."
            raise TrainingError(
                f"LoRA's target '{target}' is no linear module in the body of this {type(model).__name__}{hint} There "
                f"are {', '.join(known)}"
            )
        found |= named
    return {name: module for name, module in linear.items() if name in found}


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
