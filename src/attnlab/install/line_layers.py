"""The layers of a line by layer against those of a model."""

from attnlab.errors import InstallError
from attnlab.mechanisms import LayeredMechanism

from .attention_modules import AttentionModule


def check_line_layers(line: LayeredMechanism, attentions: list[AttentionModule]) -> None:
    """Refuse a line that leaves out a layer of the model, or has a part that no layer of the model would use."""
    layers: set[int] = set()
    for attention in attentions:
        if attention.index is None:
            raise InstallError(
                f"'{line}' names layers, but those of '{attention.name}' have no single number (two stacks as in T5, "
                "layers in groups, or one layer used several times)"
            )
        layers.add(attention.index)
    if line.every is not None:
        _check_repeated(line, line.every, layers)
        return
    named = {index for part in line.parts for index in part.layers}
    if beyond := named - layers:
        raise InstallError(f"'{line}' names layer {min(beyond)}, and {_describe_layers(layers)}")
    if missing := layers - named:
        raise InstallError(
            f"'{line}' has no mechanism for layer {min(missing)}, and {_describe_layers(layers)}; name each of them, "
            "or repeat the line with 'every'"
        )


def _check_repeated(line: LayeredMechanism, every: int, layers: set[int]) -> None:
    used = {index % every for index in layers}
    for part in line.parts:
        if not used & {*part.layers}:
            raise InstallError(
                f"no layer of the model would use '{part.mechanism}' of '{line}': it is for layer {part.layers[0]} of "
                f"every {every}, and {_describe_layers(layers)}"
            )


def _describe_layers(layers: set[int]) -> str:
    """Say which layers with attention a model has."""
    if layers == {0}:
        return "the model has one layer, 0"
    is_complete = layers == set(range(min(layers), max(layers) + 1))
    numbers = f"{min(layers)} to {max(layers)}" if is_complete else ", ".join(map(str, sorted(layers)))
    return f"the model's layers with attention are {numbers}"
