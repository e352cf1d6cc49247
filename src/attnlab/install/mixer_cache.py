"""The state of a mixer in a model's cache: one tensor for each layer, in place of keys and values."""

from typing import Any

from torch import Tensor
from transformers.cache_utils import DynamicLayer

from attnlab.errors import InstallError
from attnlab.mechanisms import Mixer

from .compat import self_attention_cache


class StateLayer(DynamicLayer):
    """A layer of a cache that keeps a mixer's state [b …]; its keys only count the tokens."""

    counts_as = DynamicLayer  # for what other stages keep in a cache

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.state: Tensor | None = None

    def keep(self, x: Tensor, state: Tensor) -> None:
        """Keep the state after the tokens x [b n m]."""
        self.update(x[:, None, :, :1].detach(), x[:, None, :, :0].detach())
        self.state = state

    def reset(self) -> None:
        """Forget all tokens."""
        super().reset()
        self.state = None

    def reorder_cache(self, beam_idx: Any) -> None:
        """Take other sequences of the batch, as beam search does."""
        super().reorder_cache(beam_idx)
        self._select(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some sequences of the batch."""
        super().batch_select_indices(indices)
        self._select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each sequence of the batch."""
        super().batch_repeat_interleave(repeats)
        self.state = None if self.state is None else self.state.repeat_interleave(repeats, dim=0)

    def crop(self, max_length: int) -> None:
        """Refuse to forget the last tokens, which a state has merged with the others."""
        if max_length < 0 or max_length < self.get_seq_length():
            raise InstallError(
                "a mixer's state cannot be cut back to fewer tokens (assisted generation does that); generate without "
                "an assistant, or with use_cache=False"
            )

    def _select(self, indices: Tensor) -> None:
        self.state = None if self.state is None else self.state.index_select(0, indices.to(self.state.device))


def find_state_layer(cache: Any, index: int | None, mixer: Mixer) -> StateLayer:
    """Return the layer of a cache that keeps a mixer's state; make it at first use."""
    cache = self_attention_cache(cache)
    if index is None:
        raise InstallError("an attention module does not say which layer of a cache is its own (layer_idx)")
    while len(cache.layers) <= index:  # a cache that grows with its layers
        cache.layers.append(cache.layer_class_to_replicate())
    layer = cache.layers[index]
    if isinstance(layer, StateLayer):
        return layer
    if type(layer) is not DynamicLayer or layer.get_seq_length():
        what = "was filled without this mechanism" if layer.get_seq_length() else f"is a {type(layer).__name__}"
        raise InstallError(f"'{mixer}' keeps its state in an empty dynamic cache, and this one {what}")
    cache.layers[index] = StateLayer()
    return cache.layers[index]  # type: ignore[no-any-return]
