"""Questions about a model with a mechanism, and the progress of training that scheduled stages depend on."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from transformers import PreTrainedConfig

from attnlab.errors import InstallError, RequestError
from attnlab.mechanisms import Line

from .compat import get_attention_name
from .interface import NAME, NAME_WITH_POSITIONS
from .layer import Layer
from .layer_input import find_active_layer
from .pass_context import get_pass_context

RECORD = "_attnlab"
"""The attribute of a model that holds its InstallationRecord."""


def attention_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module, Layer]]:
    """Yield every attention module with a mechanism: its name, the module, and its layer."""
    for name, module in model.named_modules():
        layer = find_active_layer(module)
        if isinstance(layer, Layer):
            yield name, module, layer


def check_in_use(model: nn.Module) -> None:
    """Refuse a model whose mechanism is installed but no longer called."""
    for name, module, layer in attention_layers(model):
        config = getattr(module, "config", None)
        called = get_attention_name(config) if isinstance(config, PreTrainedConfig) else layer.attention_function
        if called != layer.attention_function:
            raise InstallError(
                f"'{layer.line}' is installed in this {type(model).__name__}, but '{name}' was switched to "
                f"'{called}' attention since; call attnlab.install again, or attnlab.uninstall"
            )


def refuse_other_attention(model: nn.Module, args: object) -> None:
    """Refuse to compute if the config was switched to another attention: a hook before a model's forward.

    `set_attn_implementation` refuses this beforehand; code that writes into the config reaches only this hook.
    """
    config = getattr(model, "config", None)
    called = get_attention_name(config) if isinstance(config, PreTrainedConfig) else NAME
    if called not in (NAME, NAME_WITH_POSITIONS):
        raise InstallError(
            f"a mechanism is installed in this {type(model).__name__}, but its config was switched to '{called}' "
            "attention since, which would not compute it; call attnlab.install again, or attnlab.uninstall"
        )


def first_layer(model: nn.Module) -> Layer:
    """Return the first layer of a model with a mechanism."""
    _check_module(model)
    for _, _, layer in attention_layers(model):
        return layer
    raise InstallError(
        f"no mechanism is installed in this {type(model).__name__}; attnlab.install(model, line) does it"
    )


def find_own_layer(body: nn.Module, advice: str) -> Layer:
    """Return the first layer of a model; refuse one whose mechanism is not called, or was installed elsewhere."""
    layer = first_layer(body)
    check_in_use(body)
    if RECORD not in vars(body):
        raise InstallError(
            f"the mechanism in this {type(body).__name__} was installed in another model, around it or inside; {advice}"
        )
    return layer


def mechanism_of(model: nn.Module) -> Line | None:
    """Return the mechanism installed in a model, by layer if they differ, or None."""
    _check_module(model)
    check_in_use(model)
    installed = {layer.line for _, _, layer in attention_layers(model)}
    if len(installed) > 1:
        lines = " and ".join(sorted(f"'{line}'" for line in installed))
        raise InstallError(f"parts of this {type(model).__name__} hold different mechanisms, {lines}; pass one part")
    return next(iter(installed), None)


def _check_module(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise InstallError(f"a model is needed, not {type(model).__name__}")


def undecayed(model: nn.Module) -> list[str]:
    """List the parameters without weight decay, by their names in the model."""
    first_layer(model)
    return [f"{path}.attnlab.{name}" for path, _, layer in attention_layers(model) for name in layer.undecayed]


def penalty(model: nn.Module) -> Tensor | None:
    """Return the penalty of the last forward pass, which training adds to the loss; None without such a stage."""
    first_layer(model)
    return next(get_pass_context(module).total for _, module, _ in attention_layers(model))


def set_progress(model: nn.Module, fraction: float) -> None:
    """Set the progress of training, from 0 to 1, for scheduled stages."""
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise RequestError(f"progress must be a number from 0 to 1, not {fraction!r}")
    first_layer(model)
    for _, _, layer in attention_layers(model):
        layer.move_to(float(fraction))


def list_replaced_parameters(model: nn.Module) -> list[nn.Parameter]:
    """List the weights of attention modules that no forward pass uses, because a mixer takes their place."""
    replaced: list[nn.Parameter] = []
    for _, module, layer in attention_layers(model):
        own = {id(parameter) for parameter in layer.parameters()}
        if layer.replaces_weights:
            replaced += [parameter for parameter in module.parameters() if id(parameter) not in own]
    return replaced


@contextmanager
def omit_missing_attentions(model: nn.Module) -> Iterator[None]:
    """Let a model with mixers be called with output_attentions=True: its output then has the weights of other layers.

    Without this it is an error, because transformers leaves such layers out, and those after it are misnumbered.
    """
    layers = [layer for _, _, layer in attention_layers(model) if layer.replaces_weights]
    for layer in layers:
        layer.omits_attentions = True
    try:
        yield
    finally:
        for layer in layers:
            layer.omits_attentions = False


def list_parameters_without_products(model: nn.Module) -> list[nn.Parameter]:
    """List the parameters that tokens are not multiplied with: replaced weights, and tables of a mechanism."""
    tables = [getattr(layer, name) for _, _, layer in attention_layers(model) for name in layer.tables]
    return [*list_replaced_parameters(model), *tables]
