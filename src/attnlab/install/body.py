"""The Hugging Face model inside whatever a user holds: itself, a peft model around it, a DDP wrapper."""

from __future__ import annotations

import copy

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from attnlab.errors import InstallError

from .compat import is_compiled, original_module


def body_of(model: object) -> PreTrainedModel:
    """Return the Hugging Face model that a model is, or holds; refuse what is or holds none."""
    if not isinstance(model, nn.Module):
        raise InstallError(f"a Hugging Face model is needed (transformers.PreTrainedModel), not {type(model).__name__}")
    _check_not_compiled(model)
    models = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    if not models:
        raise InstallError(
            f"{type(model).__name__} holds no Hugging Face model (transformers.PreTrainedModel); for attention of your "
            "own there are attnlab.attend and attnlab.Attention"
        )
    body = models[0]
    inside = {id(part) for part in body.modules()}
    beside = [part for part in models if id(part) not in inside]
    if beside:
        names = f"{type(body).__name__} and {type(beside[0]).__name__}"
        raise InstallError(f"{type(model).__name__} holds several Hugging Face models ({names}); name one of them")
    return body


def _check_not_compiled(model: nn.Module) -> None:
    """Refuse a model that torch.compile has seen: its compiled code would go on with the old attention."""
    for part in model.modules():
        if is_compiled(part):
            raise InstallError(
                f"this {type(original_module(part)).__name__} is compiled already; install or uninstall "
                "first, and compile after"
            )


def give_own_configs(model: PreTrainedModel) -> None:
    """Copy the configs of a model: one that it was built from may be another model's too, which must not change."""
    memo: dict[int, object] = {}
    for part in model.modules():
        config = vars(part).get("config")
        if isinstance(config, PreTrainedConfig):
            vars(part)["config"] = copy.deepcopy(config, memo)


def has_cross_attention(model: PreTrainedModel) -> bool:
    """Tell whether some attention of a model has queries of one sequence and keys of another."""
    return any(
        config.is_encoder_decoder or getattr(config, "add_cross_attention", False) for config in configs_of(model)
    )


def configs_of(model: PreTrainedModel) -> list[PreTrainedConfig]:
    """List every config object that the modules of a model read, outer ones first."""
    found: dict[int, PreTrainedConfig] = {}

    def visit(config: object) -> None:
        if isinstance(config, PreTrainedConfig) and id(config) not in found:
            found[id(config)] = config
            for name in config.sub_configs:
                visit(getattr(config, name, None))

    for part in model.modules():
        visit(getattr(part, "config", None))
    return list(found.values())
