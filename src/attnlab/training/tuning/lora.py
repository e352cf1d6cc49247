"""LoRA through peft, in place: W x + (alpha / rank)·B A x at target modules of the body (Hu et al. 2022).

B starts at 0, so that the model computes the same at first.
"""

import math

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as DEFAULT_TARGETS
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from attnlab.errors import TrainingError, closest
from attnlab.install.adapter_config import IS_OWN
from attnlab.install.adapters import check_adapters
from attnlab.install.saving import UNSAVED

from ..spec import Tuning
from .parts import make_generator

ADAPTER = "default"


def add_lora(model: PreTrainedModel, tuning: Tuning, seed: int) -> None:
    """Add adapters to a model; the initial values of each A depend on the seed and its module's name."""
    targets = _find_targets(model, tuning.targets)
    check_adapters(model, targets.values())
    config = LoraConfig(
        r=tuning.rank, lora_alpha=tuning.alpha, lora_dropout=tuning.dropout, target_modules=list(targets),  # type: ignore[arg-type]
        fan_in_fan_out=any(isinstance(module, Conv1D) for module in targets.values()),
    )  # fmt: skip
    vars(config)[IS_OWN] = True
    # peft draws every A from torch's global generator, which must stay as it was.
    with torch.random.fork_rng(devices=[]):
        inject_adapter_in_model(config, model, ADAPTER)
    for name, module in targets.items():
        # peft puts an adapter into training mode, whatever the mode of the model.
        model.get_submodule(name).train(module.training)
        down = model.get_parameter(f"{name}.lora_A.{ADAPTER}.weight")
        # The name in the body, so that adapters start alike under every head.
        name_in_body = name.removeprefix(f"{model.base_model_prefix}.")
        start = torch.empty(down.shape)
        nn.init.kaiming_uniform_(start, a=math.sqrt(5), generator=make_generator(seed, f"{name_in_body}.lora_A"))
        with torch.no_grad():
            down.copy_(start)


def _find_targets(model: PreTrainedModel, targets: tuple[str, ...]) -> dict[str, nn.Module]:
    """Return the modules that targets, or peft's defaults, name by their whole names or the ends of them."""
    in_body = {id(module) for module in model.base_model.modules()}
    linear = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and id(module) in in_body
    }
    last_names = sorted({name.rpartition(".")[2] for name in linear})
    kind = model.config.model_type
    if not targets and kind not in DEFAULT_TARGETS:
        raise TrainingError(
            f"peft has no default targets for '{kind}'; name them: targets=('…',). The linear modules of this "
            f"{type(model).__name__} are called {', '.join(last_names)}"
        )
    selected: set[str] = set()
    for target in targets or DEFAULT_TARGETS[kind]:
        matching = {name for name in linear if f".{name}".endswith(f".{target}")}
        if not matching:
            hint = closest(target, [*last_names, *linear]) or "."
            raise TrainingError(
                f"LoRA's target '{target}' is not a linear module in the body of this {type(model).__name__}{hint} "
                f"There are {', '.join(last_names)}"
            )
        selected |= matching
    return {name: module for name, module in linear.items() if name in selected}


def merge_lora(model: PreTrainedModel) -> int:
    """Merge adapters into their weights in place, W + (alpha / rank)·B A, and return how many there were."""
    adapted = [(name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer)]
    for name, module in adapted:
        assert isinstance(module, nn.Module)
        module.merge()
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, module.base_layer)
    if adapted:
        vars(model).pop(UNSAVED, None)
    return len(adapted)
