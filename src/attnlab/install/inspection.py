"""What may be asked of a model with a mechanism, and the one dial that training turns."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from transformers import PreTrainedConfig

from attnlab.errors import InstallError, RequestError
from attnlab.mechanisms import Mechanism

from .compat import get_attention_name
from .interface import name_for
from .layer import Layer
from .pass_context import get_pass_context

RECORD = "_attnlab"
"""The attribute of a model that says how to take its mechanism out again."""


def attention_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module, Layer]]:
    """Yield every attention module that holds a mechanism: its name, itself, and the layer it holds."""
    for name, module in model.named_modules():
        held = vars(module).get("_modules", {}).get("attnlab")
        # peft may keep a trained copy in a wrapper of its own; the layer in use answers for itself.
        layer = held if isinstance(held, Layer) else _find_active_copy(held)
        if layer is not None:
            yield name, module, layer


def _find_active_copy(wrapper: object) -> Layer | None:
    """Return the layer that an adapter library's wrapper uses, if it holds one."""
    copies = getattr(wrapper, "modules_to_save", None)
    if copies is None:
        return None
    used = [copies[name] for name in getattr(wrapper, "active_adapters", []) if name in copies]
    found = used[0] if used else getattr(wrapper, "original_module", None)
    return found if isinstance(found, Layer) else None


def check_in_use(model: nn.Module) -> None:
    """Refuse a model whose mechanism is installed and no longer called."""
    for name, module, layer in attention_layers(model):
        name_of_layer = name_for(layer.mechanism)
        config = getattr(module, "config", None)
        called = get_attention_name(config) if isinstance(config, PreTrainedConfig) else name_of_layer
        if called != name_of_layer:
            raise InstallError(
                f"'{layer.mechanism}' is installed in this {type(model).__name__}, but '{name}' was switched to "
                f"'{called}' attention since; call attnlab.install again, or attnlab.uninstall"
            )


def first_layer(model: nn.Module) -> Layer:
    """Return a layer of a model with a mechanism."""
    if not isinstance(model, nn.Module):
        raise InstallError(f"a model is needed, not {type(model).__name__}")
    for _, _, layer in attention_layers(model):
        return layer
    raise InstallError(
        f"no mechanism is installed in this {type(model).__name__}; attnlab.install(model, line) does it"
    )


def mechanism_of(model: nn.Module) -> Mechanism | None:
    """Return the mechanism installed in a model, or None where there is none."""
    if not isinstance(model, nn.Module):
        raise InstallError(f"a model is needed, not {type(model).__name__}")
    check_in_use(model)
    found = {layer.mechanism for _, _, layer in attention_layers(model)}
    if len(found) > 1:
        lines = " and ".join(sorted(f"'{mechanism}'" for mechanism in found))
        raise InstallError(f"parts of this {type(model).__name__} hold different mechanisms, {lines}; ask each part")
    return next(iter(found), None)


def undecayed(model: nn.Module) -> list[str]:
    """List the parameters that weight decay must leave alone, by their names in the model."""
    first_layer(model)
    return [f"{name}.attnlab.{own}" for name, _, layer in attention_layers(model) for own in layer.undecayed]


def penalty(model: nn.Module) -> Tensor | None:
    """Return what the last forward pass added to the loss, or would have while training; None without such a stage."""
    first_layer(model)
    return next(get_pass_context(module).total for _, module, _ in attention_layers(model))


def set_progress(model: nn.Module, fraction: float) -> None:
    """Tell a scheduled stage how far training is, from 0 to 1."""
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise RequestError(f"progress must be a number from 0 to 1, not {fraction!r}")
    first_layer(model)
    for _, _, layer in attention_layers(model):
        layer.move_to(float(fraction))
