"""Activations of a model to train: the same function in one operation."""

from torch import nn
from transformers.activations import GELUTanh, NewGELUActivation


def fuse_activations(model: nn.Module) -> None:
    """Replace GELU by tanh, which transformers composes of eight operations, by torch's own, in place.

    Activations have no weights, and results change by rounding only.
    """
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is NewGELUActivation:
                setattr(module, name, GELUTanh())
