"""The functions that transformers calls: one for attention and one for masks, registered under one name.

The attention function finds the mechanism on the module that calls it. Without a mask function of the same name,
transformers passes no mask at all, and a causal model would see the future.
"""

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from attnlab.errors import InstallError

from .compat import records_attentions
from .masks import make_mask, make_mask_with_positions, read_mask
from .pass_context import get_pass_context

NAME = "attnlab"
"""transformers treats names that contain '/', 'sdpa' or 'flex_attention' specially."""

NAME_WITH_POSITIONS = "attnlab_positions"
"""The name for a mechanism that needs positions, which its masks of pairs carry."""

UNSUPPORTED = {
    "position_bias": "a position bias",
    "softcap": "a cap on its scores (softcap)",
    "s_aux": "learned attention sinks",
    "indices": "its own choice of keys (sparse attention)",
    "block_indices": "its own choice of keys (sparse attention)",
    "cache": "a paged cache",
}
"""Arguments of a model that change its scores: an error, unless the layer knows the part of the model they are from."""


def register() -> None:
    """Register both functions with transformers; calling it again changes nothing."""
    for name, mask_function in ((NAME, make_mask), (NAME_WITH_POSITIONS, make_mask_with_positions)):
        AttentionInterface.register(name, attention)
        AttentionMaskInterface.register(name, mask_function)


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None,
    dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None, **rest: Any,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attend with the module's mechanism: q [b h q d], k and v [b h k d] to [b q h d]."""
    layer = getattr(module, "attnlab", None)
    if layer is None:
        raise InstallError(
            f"{type(module).__name__} is set to '{NAME}' attention but holds no mechanism: its config came from a "
            "model with one; call attnlab.install on this model too, or build it from a config of its own"
        )
    for name, what in UNSUPPORTED.items():
        if rest.get(name) is not None and name not in layer.known_arguments:
            raise InstallError(f"'{layer.attention_name}' has {what}, which '{layer.mechanism}' does not support")
    own_scale = getattr(module, "scaling", None)
    if scaling == 1.0 and isinstance(own_scale, float) and own_scale != 1.0:
        query, scaling = query / own_scale, own_scale  # the model (OPT, Whisper) has multiplied them already
    rule = read_mask(attention_mask, module, is_causal)
    if rest.get("position_bias") is not None:
        layer.check_position_bias(rest["position_bias"], rule, query.shape[2], key.shape[2])
    needs_weights = bool(rest.get("output_attentions")) or records_attentions()
    out, weights = layer(query, key, value, rule, scaling, dropout, needs_weights)
    for term in layer.penalties(out):
        get_pass_context(module).add(term)
    # Contiguous, as from transformers' own functions: some models take a view of it.
    return out.transpose(1, 2).contiguous(), weights
