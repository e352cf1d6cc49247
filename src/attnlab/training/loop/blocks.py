"""The blocks of a model, and the hidden matrices in them: weights of linear layers between embeddings and head."""

from torch import nn
from transformers.pytorch_utils import Conv1D

from attnlab.install import attention_layers

from ..tuning.parts import MECHANISM


def find_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """Return the layers around every attention, by name: entries of a list of modules."""
    names = {name for name, _, _ in attention_layers(model)}
    return {
        f"{path}.{number}": block
        for path, stack in model.named_modules()
        if isinstance(stack, nn.ModuleList)
        for number, block in enumerate(stack)
        if any(name.startswith(f"{path}.{number}.") for name in names)
    }


def find_hidden_matrices(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trainable matrices of the linear layers in the blocks, without those of a mechanism, by name."""
    weights = {
        id(module.weight)
        for block in find_blocks(model).values()
        for name, module in block.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and MECHANISM not in name.split(".")
    }
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if id(parameter) in weights and parameter.requires_grad and parameter.dim() == 2
    }
