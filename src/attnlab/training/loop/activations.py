"""Activations of a model that is trained: the same function in one operation."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from transformers.activations import GELUTanh, NewGELUActivation


@contextmanager
def fuse_activations(model: nn.Module) -> Iterator[None]:
    """Replace GELU by tanh, which transformers composes of eight operations, by torch's own, until the context ends.

    Activations have no weights, and results change by rounding only.
    """
    places = [(module, *child) for module in model.modules() for child in module.named_children()]
    composed = [place for place in places if type(place[2]) is NewGELUActivation]
    for module, name, _ in composed:
        setattr(module, name, GELUTanh())
    try:
        yield
    finally:
        for module, name, child in composed:
            setattr(module, name, child)
