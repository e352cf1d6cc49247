"""A prefix: learned keys and values before those of every layer, visible to every query (Li & Liang 2021).

It is added where attention is computed. So it has no position in the model (a stage that needs positions gets
−length … −1), no mask hides it, no values stage changes it, and a cache of keys and values does not hold it.
"""

import zlib

import torch
from torch import nn

from attnlab.errors import InstallError, RequestError

from .attention_modules import AttentionModule, find_attention_modules
from .body import find_body, has_cross_attention
from .inspection import attention_layers, find_own_layer

DEVIATION = 0.02
"""The standard deviation of the initial values, as for the weights of BERT and GPT-2."""


def set_prefix(model: nn.Module, length: int, *, seed: int = 0) -> None:
    """Give every attention layer of a model with a mechanism its own `length` learned keys and values.

    Their initial values depend on the seed and the layer's name; torch's generator is not used. An existing prefix is
    replaced, and `uninstall` removes it.
    """
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise RequestError(f"the length of a prefix must be a whole number from 1 up, not {length!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RequestError(f"seed must be a whole number, not {seed!r}")
    body = find_body(model)
    find_own_layer(body, "give that one the prefix")
    if has_cross_attention(body):
        raise InstallError(
            f"{type(body).__name__} has cross-attention (an encoder and a decoder), where a prefix would "
            "precede another sequence's keys; use a model without cross-attention"
        )
    for _, _, layer in attention_layers(body):
        if layer.replaces_weights:
            raise InstallError(f"'{layer.mechanism}' has no keys and values to put a prefix before; use prompt tuning")
        if (ordered := layer.mechanism.forget or layer.mechanism.delta) is not None:
            raise InstallError(
                f"'{ordered}' follows the order of the tokens, to which a prefix does not belong; use prompt tuning, "
                "whose vectors are tokens"
            )
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
    """Return the length of a model's prefix, or None."""
    for _, _, layer in attention_layers(model):
        if layer.prefix_keys is not None:
            return layer.prefix_keys.shape[1]
    return None


def _compute_prefix_shapes(attention: AttentionModule, length: int) -> dict[str, tuple[int, int, int]]:
    if attention.num_key_heads is None or attention.head_dim is None or attention.value_dim is None:
        raise InstallError(
            f"'{attention.name}' ({type(attention.module).__name__}) does not say how many key heads it has and how "
            "wide they are, which determine the shape of a prefix"
        )
    return {
        "prefix_keys": (attention.num_key_heads, length, attention.head_dim),
        "prefix_values": (attention.num_key_heads, length, attention.value_dim),
    }
