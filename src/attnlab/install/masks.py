"""Attention masks on their way from a Hugging Face model to `attend`.

transformers asks `make_mask` for one tensor per forward pass and passes it to every layer, where `read_mask` turns it
into a `MaskRule`, the only form that the rest of attnlab sees. The causal mask and padding stay apart, because a mask
stage, `divide=n` and fast kernels need both. transformers passes on nothing but a tensor, so its dtype says what it is:

    None      no mask; causal if the attention module is
    uint8     [b 1 1 k]: causal, the last query at the last key, with these keys visible; a single expanded number if
              nothing is padded, since not every module of a causal model declares that it is causal
    bool      [b 1 q|1 k]: exactly these pairs, whether the module is causal or not
    int64     [b 1 q k]: the same pairs, and the positions of queries and keys, for a mechanism that needs positions
    float     made by others: added to the scores, accepted if every number is 0 or about −∞
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function, sdpa_mask

from attnlab.errors import InstallError
from attnlab.mechanisms import Positions

MARK = 2**62
"""Added to every number of a mask with positions, to distinguish it from a user's mask of whole numbers."""

CAUSAL = torch.uint8
"""The dtype that marks a padding mask as causal: no other masks have it, and slices and copies keep it."""


def make_mask(
    batch_size: int, q_length: int, kv_length: int, q_offset: int | Tensor = 0, kv_offset: int = 0, *,
    mask_function: Any = causal_mask_function, attention_mask: Tensor | None = None, local_size: int | None = None,
    allow_is_causal_skip: bool = True, allow_is_bidirectional_skip: bool = False, **rest: Any,
) -> Tensor | None:  # fmt: skip
    """Make the mask that transformers asks for; the arguments are those of its `sdpa_mask`."""
    is_short = local_size is None or kv_length < local_size
    # A static cache gives the offset as a tensor, and more keys than there are tokens, which needs a mask of pairs.
    is_aligned = isinstance(q_offset, int) and q_offset + q_length == kv_offset + kv_length
    is_causal = allow_is_causal_skip and is_short and is_aligned
    is_full = allow_is_bidirectional_skip and is_short and mask_function is bidirectional_mask_function
    if is_causal or is_full:
        keys = _read_padding(attention_mask, kv_offset, kv_length)
        if not is_causal:
            return keys
        if keys is not None:
            return keys.to(CAUSAL)
        # One number in memory for all keys, by which `read_mask` recognises it.
        device = rest.get("device", None if attention_mask is None else attention_mask.device)
        return torch.ones((), dtype=CAUSAL, device=device).expand(batch_size, 1, 1, kv_length)
    pairs: Tensor | None = sdpa_mask(
        batch_size, q_length, kv_length, q_offset, kv_offset,  # type: ignore[arg-type]
        mask_function=mask_function, attention_mask=attention_mask, local_size=local_size,
        allow_is_causal_skip=False, allow_is_bidirectional_skip=False, **rest,
    )  # fmt: skip
    return pairs


def make_mask_with_positions(
    batch_size: int, q_length: int, kv_length: int, q_offset: int | Tensor = 0, kv_offset: int = 0, *,
    attention_mask: Tensor | None = None, **rest: Any,
) -> Tensor | None:  # fmt: skip
    """Make a mask as `make_mask` does; a mask of pairs also carries positions, which padding determines otherwise."""
    mask = make_mask(batch_size, q_length, kv_length, q_offset, kv_offset, attention_mask=attention_mask, **rest)
    if mask is None or mask.dtype != torch.bool or (mask.shape[2] == 1 and q_length > 1):
        return mask
    slots = torch.arange(kv_offset + kv_length, device=mask.device)
    if attention_mask is not None:
        padding = torch.nn.functional.pad(attention_mask, (0, max(0, len(slots) - attention_mask.shape[-1])))
        slots = _count_tokens(padding[:, : len(slots)].to(mask.device))
    queries = slots[..., torch.arange(q_length, device=mask.device) + q_offset]
    return _encode_positions(mask, queries, slots[..., kv_offset:])


def _count_tokens(padding: Tensor) -> Tensor:
    """Return the position of each token of [b k], not counting padding, whose own positions have no meaning."""
    return padding.long().cumsum(-1) - 1


def _encode_positions(pairs: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Encode pairs [b 1 q k] and positions [b q], [b k] in one tensor: the pair in bit 0, key from 1, query from 32 on.

    One tensor, because transformers passes one to the layers, and to a layer that checkpointing computes again.
    """
    # Plus 1, since padding before the first token is at −1.
    shape = (-1, 1, queries.shape[-1], 1), (-1, 1, 1, keys.shape[-1])
    return pairs.long() + (keys.reshape(shape[1]) + 1) * 2 + (queries.reshape(shape[0]) + 1) * 2**32 + MARK


def _decode_positions(code: Tensor) -> tuple[Tensor, Positions]:
    keys, queries = (code[:, :, 0] >> 1) & (2**31 - 1), (code[..., 0] - MARK) >> 32
    return (code & 1).bool(), Positions(queries - 1, keys - 1)


def _has_positions(mask: Tensor) -> bool:
    # The content of a tensor is not known while tracing.
    return torch.compiler.is_compiling() or mask.numel() == 0 or int(mask[0, 0, 0, 0]) >= MARK


def _read_padding(padding: Tensor | None, start: int, length: int) -> Tensor | None:
    """Return the visible keys of a padding mask [b k] as [b 1 1 k], or None if all are visible."""
    if padding is None:
        return None
    missing = start + length - padding.shape[-1]
    keys = torch.nn.functional.pad(padding, (0, missing)) if missing > 0 else padding
    keys = keys[:, start : start + length].bool()
    # The content of a mask is not known while tracing; a mask that forbids nothing is correct too.
    if not torch.compiler.is_compiling() and bool(keys.all()):
        return None
    return keys[:, None, None, :]


@dataclass(frozen=True)
class MaskRule:
    """Which pairs are visible: causal or not, a boolean mask, and whether that mask replaces a causal one.

    `positions` are those that the mask carried, if any; `locate` returns them or computes them.
    """

    causal: bool
    mask: Tensor | None = None
    replaces_causal: bool = False
    positions: Positions | None = None

    def locate(self, num_queries: int, num_keys: int, device: torch.device) -> Positions | None:
        """Return the positions of queries and keys, not counting padding; None if they are unknown."""
        if self.positions is not None:
            return self.positions
        if not self.causal and num_queries != num_keys:
            return None  # a custom mask over a cache
        if self.mask is not None and self.mask.shape[2] == 1:
            keys = _count_tokens(self.mask[:, 0])
        else:
            keys = torch.arange(num_keys, device=device)[None, None]
        return Positions(keys[..., num_keys - num_queries :], keys)


def separates_neighbours(mask: Tensor | None) -> bool:
    """Tell whether a token does not see the one before it, as at the start of a sequence in a packed row."""
    if mask is None or mask.shape[2] != mask.shape[3] or mask.shape[2] == 1:
        return False
    pairs = mask.any(1)
    is_token = pairs.any(1)
    return bool((is_token[:, 1:] & is_token[:, :-1] & ~pairs.diagonal(-1, 1, 2)).any())


def read_mask(mask: Tensor | None, module: torch.nn.Module, is_causal: bool | None) -> MaskRule:
    """Read the mask that a layer was given, and the `is_causal` it passed, if any."""
    is_causal = getattr(module, "is_causal", None) if is_causal is None else is_causal
    if mask is None:
        if is_causal is None:
            raise InstallError(
                f"{type(module).__name__} was given no mask and does not say whether it is causal (no `is_causal`); "
                "pass the model an attention_mask"
            )
        return MaskRule(bool(is_causal))
    if mask.dim() != 4:
        raise InstallError(
            f"{type(module).__name__} was given a mask of shape {tuple(mask.shape)}, not [batch, 1, queries, keys]"
        )
    if mask.dtype == CAUSAL:
        if mask.shape[2] != 1:
            raise InstallError(
                f"{type(module).__name__} combines the causal mask with another one, which attnlab cannot interpret"
            )
        return MaskRule(True, mask.to(torch.bool) if any(mask.stride()) else None)
    positions = None
    if mask.dtype == torch.int64 and _has_positions(mask):
        allowed, positions = _decode_positions(mask)
    else:
        allowed = mask if mask.dtype == torch.bool else _read_additive_mask(mask, module)
        allowed = allowed[:, :, :1] if allowed.stride(2) == 0 else allowed
    return MaskRule(False, allowed, bool(is_causal) and allowed.shape[2] > 1, positions)


def _read_additive_mask(bias: Tensor, module: torch.nn.Module) -> Tensor:
    """Read a mask that is added to the scores: 0 allows a pair, a number near −∞ forbids it."""
    if not bias.is_floating_point():
        raise InstallError(f"{type(module).__name__} was given a mask of {bias.dtype}; booleans or floats are needed")
    allowed = bias == 0
    # Half of the lowest number, since several masks may have been added.
    forbidden = bias <= max(torch.finfo(bias.dtype).min / 2, -1e4)
    if not bool((allowed | forbidden).all()):
        raise InstallError(
            f"{type(module).__name__} adds a bias to its scores (ALiBi, relative positions), not only a mask; "
            "a mechanism does not support that"
        )
    return allowed
