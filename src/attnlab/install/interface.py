"""What transformers calls: one attention function and one mask function, registered together under one name.

The function finds the mechanism on the module that calls it. Without a mask function of the same name transformers
would hand out no mask at all, and a causal model would see the future.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from attnlab.errors import InstallError
from attnlab.mechanisms import Mechanism

from .compat import records_attentions
from .masks import make_mask, make_mask_with_positions, read_mask
from .pass_context import get_pass_context

NAME = "attnlab"
"""transformers treats names with '/', 'sdpa' or 'flex_attention' in them specially; this has none of them."""

TOLD = "attnlab_positions"
"""The same for a mechanism that asks for positions: its masks of single pairs carry them."""

UNHONOURED = {
    "position_bias": "a position bias",
    "softcap": "a cap on its scores (softcap)",
    "s_aux": "learned attention sinks",
    "indices": "a choice of keys of its own (sparse attention)",
    "block_indices": "a choice of keys of its own (sparse attention)",
    "cache": "a paged cache",
}
"""What a model may pass that changes its scores, and that a mechanism has no place for."""


def register() -> None:
    """Make both functions known to transformers; doing it again changes nothing."""
    for name, mask_function in ((NAME, make_mask), (TOLD, make_mask_with_positions)):
        AttentionInterface.register(name, attention)
        AttentionMaskInterface.register(name, mask_function)


def name_for(mechanism: Mechanism) -> str:
    """Return the name under which transformers is to call a mechanism."""
    return TOLD if mechanism.stages_asking("positions") else NAME


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **rest: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend as the module's mechanism says; q [b h q d], k and v [b h k d] come in, [b q h d] goes out."""
    layer = getattr(module, "attnlab", None)
    if layer is None:
        raise InstallError(
            f"{type(module).__name__} is to attend by '{NAME}' but holds no mechanism: its config came from a model "
            "with one; call attnlab.install on this model too, or build it from a config of its own"
        )
    for name, what in UNHONOURED.items():
        if rest.get(name) is not None:
            raise InstallError(f"'{layer.attention_name}' has {what}, which '{layer.mechanism}' cannot honour")
    query, scaling = _undo_scaling(module, query, scaling)
    rule = read_mask(attention_mask, module, is_causal)
    out, weights = layer(query, key, value, rule, scaling, dropout, _wants_weights(rest))
    for term in layer.penalties(out):
        get_pass_context(module).add(term)
    # Laid out as transformers' own functions do: some models take a view of it.
    return out.transpose(1, 2).contiguous(), weights


def _undo_scaling(module: nn.Module, query: Tensor, scaling: float | None) -> tuple[Tensor, float | None]:
    """Give back the projected query where a model (OPT, Whisper) has multiplied it with the scale already."""
    own = getattr(module, "scaling", None)
    if scaling == 1.0 and isinstance(own, float) and own != 1.0:
        return query / own, own
    return query, scaling


def _wants_weights(rest: dict[str, Any]) -> bool:
    """Tell whether the weights are asked for: by the call, or by what transformers is recording."""
    return bool(rest.get("output_attentions")) or records_attentions()
