"""A model's weights by what they are for: a fused projection is cut into queries, keys and values.

Arms of a study begin alike in the weights they have in common. Under share(qk) or share(qkv) the queries' projection is
the one that is kept; keys (and values) have no weights of their own, and so nothing to begin alike in.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from .attention_modules import describe_attention
from .inspection import attention_layers
from .projections import PARTS, Part, Projections
from .sharing import tied_parts


def weight_parts(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter by name; one that a fused projection holds as its parts, such as `c_attn.weight[q]`."""
    fused = {id(tensor): parts for tensor, parts in _fused_parts(model)}
    for name, parameter in model.named_parameters():
        if id(parameter) not in fused:
            yield name, parameter
            continue
        for part, (axis, start, width) in fused[id(parameter)].items():
            yield f"{name}[{part}]", parameter.narrow(axis, start, width)


Stretch = tuple[int, int, int]
"""Axis, start and width within a parameter."""


def _fused_parts(model: nn.Module) -> Iterator[tuple[Tensor, dict[Part, Stretch]]]:
    for name, module, layer in attention_layers(model):
        projections = describe_attention(name, module).projections
        if projections is None:
            continue
        borrowing = tied_parts(layer.mechanism.share)[1:]
        for linear in {id(one.module): one.module for one in projections.values() if one.is_fused}.values():
            for tensor, axis in ((linear.weight, 1 if isinstance(linear, Conv1D) else 0), (linear.bias, 0)):
                if isinstance(tensor, Tensor):
                    yield tensor, _stretches(projections, linear, borrowing, axis)


def _stretches(
    projections: Projections, linear: nn.Module, borrowing: tuple[Part, ...], axis: int
) -> dict[Part, Stretch]:  # fmt: skip
    """Return where each part stands in a fused parameter, which holds no columns for parts that borrow."""
    found: dict[Part, Stretch] = {}
    start = 0
    for part in PARTS:
        if projections[part].module is linear and part not in borrowing:
            found[part] = axis, start, projections[part].width
            start += projections[part].width
    return found
