"""A prefix: learned keys and values that stand before every layer's own, visible to every query (Li & Liang 2021).

It is put there where attention is computed. So the model gives it no position (a stage that asks is told −length … −1),
no mask hides it, no values stage changes it, and a cache of keys and values never holds it.
"""

from __future__ import annotations

import zlib

import torch
from torch import nn
from transformers import PreTrainedModel

from attnlab.errors import InstallError, RequestError

from .attention_modules import AttentionModule, find_attention_modules
from .body import body_of, has_cross_attention
from .inspection import RECORD, attention_layers, check_in_use, first_layer

DEVIATION = 0.02
"""Of the normal distribution a prefix starts from: that of the weights of BERT and GPT-2."""


def set_prefix(model: nn.Module, length: int, *, seed: int = 0) -> None:
    """Give every attention layer of a model with a mechanism `length` learned keys and values of its own.

    They start as a function of the seed and the layer's name; torch's own generator is left alone. A prefix that is
    there already is replaced, and `uninstall` takes it out.
    """
    for what, number, least in (("the length of a prefix", length, 1), ("seed", seed, None)):
        if isinstance(number, bool) or not isinstance(number, int) or (least is not None and number < least):
            needed = "a whole number" if least is None else f"a whole number from {least} up"
            raise RequestError(f"{what} must be {needed}, not {number!r}")
    body = body_of(model)
    first_layer(body)
    check_in_use(body)
    if RECORD not in vars(body):
        raise InstallError(
            f"the mechanism in this {type(body).__name__} was installed in another model, around it or inside; give "
            "that one the prefix"
        )
    _check_one_stack(body)
    attentions = find_attention_modules(body)
    shapes = [_compute_prefix_shapes(attention, length) for attention in attentions]
    layers = {id(module): layer for _, module, layer in attention_layers(body)}
    for attention, pair in zip(attentions, shapes, strict=True):
        weight = next(p for p in attention.module.parameters() if p.is_floating_point())
        for name, shape in pair.items():
            generator = torch.Generator().manual_seed(zlib.crc32(f"{attention.name}.{name}:{seed}".encode()))
            start = torch.randn(shape, generator=generator) * DEVIATION
            setattr(layers[id(attention.module)], name, nn.Parameter(start.to(weight.device, weight.dtype)))


def prefix_of(model: nn.Module) -> int | None:
    """Return the length of the prefix in a model, or None where there is none."""
    for _, _, layer in attention_layers(model):
        if layer.prefix_keys is not None:
            return layer.prefix_keys.shape[1]
    return None


def _check_one_stack(body: PreTrainedModel) -> None:
    """Refuse cross-attention, whose keys are another sequence's."""
    if has_cross_attention(body):
        raise InstallError(
            f"{type(body).__name__} has cross-attention (an encoder and a decoder), where a prefix would "
            "stand before another sequence's keys; a model of one stack is needed"
        )


def _compute_prefix_shapes(attention: AttentionModule, length: int) -> dict[str, tuple[int, int, int]]:
    """Return what a layer's prefix is shaped like; refuse a layer that does not say how its keys are."""
    if attention.num_key_heads is None or attention.head_dim is None or attention.value_dim is None:
        raise InstallError(
            f"'{attention.name}' ({type(attention.module).__name__}) does not say how many key heads it has and how "
            "wide they are, which a prefix is shaped by"
        )
    return {
        "prefix_keys": (attention.num_key_heads, length, attention.head_dim),
        "prefix_values": (attention.num_key_heads, length, attention.value_dim),
    }
