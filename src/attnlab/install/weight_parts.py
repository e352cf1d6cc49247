"""A model's weights by purpose: a fused projection is split into queries, keys and values.

The arms of a study start with equal values of the weights they have in common. Of tied projections only the first has
weights: the queries' under share(qk) and share(qkv), the keys' under share(kv). The narrower projections of heads(kv=N)
are not those of the baseline, and have names of their own.
"""

from collections.abc import Iterator

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from .attention_modules import describe_attention
from .inspection import attention_layers
from .projections import PARTS, Part
from .sharing import list_tied_parts

Slice = tuple[int, int, int]
"""Axis, start and width within a parameter."""


def weight_parts(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter by name; that of a fused projection in parts, such as `c_attn.weight[q]`."""
    fused = {id(tensor): parts for tensor, parts in find_fused_parameters(model)}
    num_narrowed = dict(_find_narrowed_parameters(model))
    for name, parameter in model.named_parameters():
        heads = f"{num_narrowed[id(parameter)]} heads" if id(parameter) in num_narrowed else ""
        if id(parameter) not in fused:
            yield f"{name}[{heads}]" if heads else name, parameter
            continue
        for part, (axis, start, width) in fused[id(parameter)].items():
            label = f"{part}, {heads}" if heads and part != "q" else part
            yield f"{name}[{label}]", parameter.narrow(axis, start, width)


def _find_narrowed_parameters(model: nn.Module) -> Iterator[tuple[int, int]]:
    """Yield the id of each parameter with narrowed heads of keys or values, and their number."""
    for name, module, layer in attention_layers(model):
        if layer.num_key_heads is not None:
            projections = describe_attention(name, module).projections or {}
            for linear in (projections[part].module for part in ("k", "v")):
                for tensor in (linear.weight, linear.bias):
                    if isinstance(tensor, Tensor):
                        yield id(tensor), layer.num_key_heads


def find_fused_parameters(model: nn.Module) -> Iterator[tuple[Tensor, dict[Part, Slice]]]:
    """Yield the weight and the bias of every fused projection, with the place of each of its parts."""
    for name, module, layer in attention_layers(model):
        projections = describe_attention(name, module).projections or {}
        tied_parts = list_tied_parts(layer.mechanism.share)[1:]
        for linear in {id(p.module): p.module for p in projections.values() if p.is_fused}.values():
            widths = {part: projections[part].width for part in PARTS if projections[part].module is linear}
            for tensor, axis in ((linear.weight, 1 if isinstance(linear, Conv1D) else 0), (linear.bias, 0)):
                if isinstance(tensor, Tensor):
                    slices, start = {}, 0
                    for part, width in widths.items():
                        if part not in tied_parts:  # a tied part has no columns of its own
                            slices[part] = axis, start, width
                            start += width
                    yield tensor, slices
