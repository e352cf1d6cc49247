"""Projections that cannot have an adapter (LoRA), because the mechanism changes them itself."""

from collections.abc import Iterable

from torch import nn
from transformers import PreTrainedModel

from attnlab.errors import InstallError

from .attention_modules import find_attention_modules
from .inspection import attention_layers, check_in_use
from .sharing import list_tied_parts
from .valuepath import acts_at


def check_adapters(model: PreTrainedModel, modules: Iterable[nn.Module]) -> None:
    """Refuse adapters on projections that the mechanism ties, or changes other than by adding to them."""
    check_in_use(model)
    adapted = {id(module) for module in modules}
    layers = {id(module): layer for _, module, layer in attention_layers(model)}
    if not layers:
        return
    for attention in find_attention_modules(model):
        layer = layers.get(id(attention.module))
        if layer is None:
            continue
        mechanism = layer.mechanism
        for part, projection in (attention.projections or {}).items():
            if id(projection.module) not in adapted:
                continue
            where = f"'{projection.name}' of '{attention.name}'"
            if part in list_tied_parts(mechanism.share):
                raise InstallError(
                    f"'{mechanism.share}' ties {where} to another projection, and an adapter on it would separate "
                    f"them; leave '{projection.name}' out of the targets"
                )
            for feature in mechanism.early_features:
                if part in feature.sides:
                    raise InstallError(
                        f"'{feature}' changes the output of {where}, and an adapter would add to it afterwards; leave "
                        f"'{projection.name}' out of the targets"
                    )
            for stage in mechanism.values:
                if stage.target == part and not stage.only_adds and acts_at(stage, attention):
                    raise InstallError(
                        f"'{stage}' changes the output of {where}, and an adapter would add to it afterwards; leave "
                        f"'{projection.name}' out of the targets"
                    )
