"""The Hugging Face model inside the model that a user passes: itself, or wrapped by peft or DDP."""

import copy

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from attnlab.errors import InstallError

from .compat import is_compiled, original_module


def find_body(model: object) -> PreTrainedModel:
    """Return the Hugging Face model that a model is, or contains; refuse a model without one."""
    if not isinstance(model, nn.Module):
        raise InstallError(f"a Hugging Face model is needed (transformers.PreTrainedModel), not {type(model).__name__}")
    for part in model.modules():
        if is_compiled(part):  # the compiled code would keep the old attention
            raise InstallError(
                f"this {type(original_module(part)).__name__} is compiled already; install or uninstall "
                "first, and compile after"
            )
    models = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    if not models:
        raise InstallError(
            f"{type(model).__name__} holds no Hugging Face model (transformers.PreTrainedModel); for custom attention "
            "use attnlab.attend or attnlab.Attention"
        )
    body = models[0]
    inside = {id(part) for part in body.modules()}
    others = [part for part in models if id(part) not in inside]
    if others:
        names = f"{type(body).__name__} and {type(others[0]).__name__}"
        raise InstallError(f"{type(model).__name__} holds several Hugging Face models ({names}); pass one of them")
    return body


def copy_configs(model: PreTrainedModel) -> None:
    """Give a model copies of its configs, so that other models built from the same configs do not change."""
    memo: dict[int, object] = {}
    for part in model.modules():
        config = vars(part).get("config")
        if isinstance(config, PreTrainedConfig):
            vars(part)["config"] = copy.deepcopy(config, memo)


def has_cross_attention(model: PreTrainedModel) -> bool:
    """Tell whether some attention of a model has queries of one sequence and keys of another."""
    return any(
        config.is_encoder_decoder or getattr(config, "add_cross_attention", False) for config in list_configs(model)
    )


def list_configs(model: PreTrainedModel) -> list[PreTrainedConfig]:
    """List every config object of the modules of a model, outer ones first."""
    configs: dict[int, PreTrainedConfig] = {}

    def visit(config: object) -> None:
        if isinstance(config, PreTrainedConfig) and id(config) not in configs:
            configs[id(config)] = config
            for name in config.sub_configs:
                visit(getattr(config, name, None))

    for part in model.modules():
        visit(getattr(part, "config", None))
    return list(configs.values())
