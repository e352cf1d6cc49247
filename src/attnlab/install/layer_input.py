"""The layer's input x in a model, for stages that need it: taken where an attention module is called, and kept in the
model's cache for the tokens before.

transformers passes no hidden state to an attention function. A cache keeps x as the keys of a further layer, one for
each layer of the model, so that whatever reorders, crops or repeats a cache does so to x as well.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.errors import InstallError
from attnlab.mechanisms import LayerInput

from .compat import make_cache_layer, self_attention_cache
from .masks import read_mask
from .projections import StandIn

HIDDEN = ("hidden_states", "x", "hidden_state")
CACHES = ("past_key_values", "past_key_value", "layer_past")


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """What an attention module was called with: its input [b n m], the cache or None, and the mask."""

    x: Tensor
    cache: Any
    mask: Tensor | None


def find_active_layer(attention: nn.Module) -> nn.Module | None:
    """Return the submodule `attnlab` that an attention module uses: peft (modules_to_save) may train a copy of it."""
    layer: Any = vars(attention).get("_modules", {}).get("attnlab")
    copies = getattr(layer, "modules_to_save", None)
    if copies is None:
        return layer  # type: ignore[no-any-return]
    active = [copies[adapter] for adapter in getattr(layer, "active_adapters", []) if adapter in copies]
    return active[0] if active else getattr(layer, "original_module", None)


class AttentionCall(StandIn):
    """Replaces the forward of an attention module, and tells its layer what the module was called with."""

    def __init__(self, attention: nn.Module) -> None:
        self.names = [name for name in inspect.signature(type(attention).forward).parameters if name != "self"]
        self.take_place(attention)

    def read(self, args: tuple[Any, ...], options: dict[str, Any]) -> ModuleCall:
        """Find the input, the cache and the mask among the arguments of a call."""
        given = {**dict(zip(self.names, args, strict=False)), **options}
        x = next((given[name] for name in HIDDEN if isinstance(given.get(name), Tensor)), None)
        if x is None:
            raise InstallError(
                f"{type(self.module).__name__} is called without a tensor named {' or '.join(HIDDEN)}, so that the "
                "layer's input is unknown"
            )
        cache = next((given[name] for name in CACHES if given.get(name) is not None), None)
        return ModuleCall(x, cache, given.get("attention_mask"))

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute attention."""
        layer: Any = find_active_layer(self.module)
        layer.called = self.read(args, options)
        if self.before is not None:
            return self.before(*args, **options)
        return type(self.module).forward(self.module, *args, **options)


def recall_input(call: ModuleCall, index: int | None, num_layers: int, num_keys: int) -> LayerInput:
    """Return x at the queries and at all keys; those of earlier tokens come from the cache, which keeps the new ones.

    index: the number of the attention module among the layers of a cache.
    """
    cache = self_attention_cache(call.cache)
    if cache is None:
        return LayerInput(call.x, call.x)
    kept = find_kept_input(cache, index, num_layers)
    new = call.x[:, None]
    keys, _ = kept.update(new, new[..., :0])
    if keys.shape[2] != num_keys:
        raise InstallError(
            f"the cache holds {num_keys} keys, and the layer's input of {keys.shape[2]} tokens: it was filled without "
            "this mechanism, or peft's prefix tuning put keys into it; start with an empty cache, or use prompt "
            "tuning, whose vectors are tokens"
        )
    return LayerInput(call.x, keys[:, 0])


def find_kept_input(cache: Any, index: int | None, num_layers: int) -> Any:
    """Return the layer of a cache that keeps x for an attention module; make it at first use."""
    if index is None:
        raise InstallError("an attention module does not say which layer of a cache is its own (layer_idx)")
    while len(cache.layers) < num_layers:  # a cache that grows with its layers
        cache.layers.append(cache.layer_class_to_replicate())
    for number in range(len(cache.layers) - num_layers, index + 1):
        cache.layers.append(make_cache_layer(cache.layers[number]))
    return cache.layers[num_layers + index]


@dataclass(frozen=True, eq=False)
class Earlier:
    """The last tokens before those that a module is called with: their x [b e m], and whether the token before each of
    these and of the new ones is a token of the same sequence, not padding, [b|1 e+n]; None if all are."""

    x: Tensor
    is_token: Tensor | None


def find_earlier(call: ModuleCall, module: nn.Module, index: int | None, num_layers: int, num_tokens: int) -> Earlier:
    """Return what is known of the last `num_tokens` tokens before those of a call, or of all if there are fewer."""
    cache, length, x = self_attention_cache(call.cache), 0, call.x[:, :0]
    if cache is not None:
        kept = find_kept_input(cache, index, num_layers)
        if kept.is_initialized:
            length = int(kept.get_seq_length())
            # A static cache has empty places at its end; one of a sliding window holds fewer tokens than it has seen.
            stop = min(length, kept.keys.shape[2])
            x = kept.keys[:, 0, max(0, stop - num_tokens) : stop]
    mask = read_mask(call.mask, module, None).mask
    if mask is None:
        return Earlier(x, None)
    seen = mask.flatten(1, 2).any(1)  # [b|1 k]
    dropped = max(0, length + call.x.shape[1] - seen.shape[1])  # tokens that a sliding window has left behind
    start = length - x.shape[1] - 1 - dropped
    places = torch.arange(start, start + x.shape[1] + call.x.shape[1], device=seen.device)
    is_token = seen[:, places.clamp(min=0)] & (places >= 0)
    num_new = call.x.shape[1]
    if mask.shape[2] == num_new > 1:
        # In packed rows a token does not see the one before it, where that is the last of another sequence.
        pairs = mask.any(1)[:, torch.arange(num_new, device=seen.device), places[-num_new:].clamp(min=0)]
        is_token = torch.cat([is_token[:, :-num_new].expand(len(pairs), -1), is_token[:, -num_new:] & pairs], 1)
    return Earlier(x, is_token)
