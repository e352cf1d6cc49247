"""torch.compile layer by layer, since the layers of a model are alike and compile once."""

from torch import nn

from attnlab.errors import TrainingError

from .blocks import find_blocks


def compile_layers(model: nn.Module) -> str:
    """Compile the layers around every attention in place; return a message about the cost."""
    layers = find_blocks(model).values()
    if not layers:
        raise TrainingError(
            f"{type(model).__name__} has no list of layers (nn.ModuleList) that can be compiled one by one"
        )
    for layer in layers:
        layer.compile(dynamic=True)
    return (
        f"torch.compile: {len(layers)} layers are compiled in the first steps, which takes a minute or more and needs "
        "a C++ compiler; results differ from those without it by rounding"
    )
