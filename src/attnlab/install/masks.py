"""Which pairs may meet, between a Hugging Face model that says it and `attend` that honours it.

transformers asks a registered function for one mask a forward pass, and hands the answer to every layer. Ours says the
causal rule and padding apart, because a mechanism's mask stage, its `divide=n` and its fast kernels need them apart:

    None      no mask was asked for, or nothing is hidden; causal where the attention module says so
    uint8     [b 1 1 k]: causal, the last query at the last key, and these keys may be seen; one number for all where
              nothing is padded, since not every module of a causal model says that it is causal
    bool      [b 1 q|1 k]: exactly these pairs, whatever the module says
    int64     [b 1 q k]: the same pairs, and where queries and keys stand, for a mechanism that asks for positions
    float     from elsewhere: what is added to the scores, honoured where it is 0 or as good as −∞ throughout
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function, sdpa_mask

from attnlab.errors import InstallError
from attnlab.mechanisms import Positions

MARK = 2**62
"""Added to every number of a mask that carries positions, by which it is told from whole numbers of a user's own."""

CAUSAL = torch.uint8
"""The dtype that marks a padding mask as causal: nobody else's masks have it, and slices and copies keep it."""


def make_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    *,
    mask_function: Any = causal_mask_function,
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    **rest: Any,
) -> Tensor | None:
    """Answer transformers' request for a mask; the arguments are those of its `sdpa_mask`."""
    is_short = local_size is None or kv_length < local_size
    # A static cache gives the offset as a tensor, and more keys than there are tokens: only pairs say that exactly.
    is_aligned = isinstance(q_offset, int) and q_offset + q_length == kv_offset + kv_length
    is_causal = allow_is_causal_skip and is_short and is_aligned
    is_full = allow_is_bidirectional_skip and is_short and mask_function is bidirectional_mask_function
    if is_causal or is_full:
        keys = _read_padding(attention_mask, kv_offset, kv_length)
        if not is_causal:
            return keys
        return _make_causal_mask(batch_size, kv_length, attention_mask, rest) if keys is None else keys.to(CAUSAL)
    pairs: Tensor | None = sdpa_mask(
        batch_size, q_length, kv_length, q_offset, kv_offset,  # type: ignore[arg-type]
        mask_function=mask_function, attention_mask=attention_mask, local_size=local_size,
        allow_is_causal_skip=False, allow_is_bidirectional_skip=False, **rest,
    )  # fmt: skip
    return pairs


def make_mask_with_positions(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    *,
    attention_mask: Tensor | None = None,
    **rest: Any,
) -> Tensor | None:
    """Answer as `make_mask` does, with positions where the answer is single pairs; else padding says them."""
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
    """Return the position of each token of [b k], which padding does not count in; that of padding has no meaning."""
    return padding.long().cumsum(-1) - 1


def _encode_positions(pairs: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Write pairs [b 1 q k] and positions [b q], [b k] as one number each: pair, key from bit 1, query from bit 32 on.

    One tensor, because transformers hands one to the layers, and to a layer that checkpointing computes again.
    """
    # From 1 on, since what stands before the first token is at −1.
    shape = (-1, 1, queries.shape[-1], 1), (-1, 1, 1, keys.shape[-1])
    return pairs.long() + (keys.reshape(shape[1]) + 1) * 2 + (queries.reshape(shape[0]) + 1) * 2**32 + MARK


def _decode_positions(code: Tensor) -> tuple[Tensor, Positions]:
    """Return the pairs and the positions that `with_positions` wrote."""
    keys, queries = (code[:, :, 0] >> 1) & (2**31 - 1), (code[..., 0] - MARK) >> 32
    return (code & 1).bool(), Positions(queries - 1, keys - 1)


def _has_positions(mask: Tensor) -> bool:
    """Tell whether a mask of whole numbers is one that `with_positions` wrote."""
    # What a tensor holds cannot be asked while tracing.
    return torch.compiler.is_compiling() or mask.numel() == 0 or int(mask[0, 0, 0, 0]) >= MARK


def _make_causal_mask(batch_size: int, length: int, padding: Tensor | None, rest: dict[str, Any]) -> Tensor:
    """Return [b 1 1 k] of ones that are all one number in memory, by which they are known again."""
    device = rest.get("device", None if padding is None else padding.device)
    return torch.ones((), dtype=CAUSAL, device=device).expand(batch_size, 1, 1, length)


def _read_padding(padding: Tensor | None, start: int, length: int) -> Tensor | None:
    """Return the keys a padding mask [b k] lets through as [b 1 1 k], or None where it lets all."""
    if padding is None:
        return None
    missing = start + length - padding.shape[-1]
    keys = torch.nn.functional.pad(padding, (0, missing)) if missing > 0 else padding
    keys = keys[:, start : start + length].bool()
    # What a mask holds cannot be asked while tracing; a mask that forbids nothing is right too.
    if not torch.compiler.is_compiling() and bool(keys.all()):
        return None
    return keys[:, None, None, :]


@dataclass(frozen=True)
class Rule:
    """What `attend` is told: the causal rule, a boolean mask, and whether the mask replaces a causal rule.

    `positions` are there where the mask carried them; where it did not, `locate` finds them.
    """

    causal: bool
    mask: Tensor | None = None
    is_instead: bool = False
    positions: Positions | None = None

    def locate(self, num_queries: int, num_keys: int, device: torch.device) -> Positions | None:
        """Return where queries and keys stand: tokens are counted, padding is not; None where that cannot be told."""
        if self.positions is not None:
            return self.positions
        if not self.causal and num_queries != num_keys:
            return None  # a mask from elsewhere, over a cache of whatever kind
        if self.mask is not None and self.mask.shape[2] == 1:
            keys = _count_tokens(self.mask[:, 0])
        else:
            keys = torch.arange(num_keys, device=device)[None, None]
        return Positions(keys[..., num_keys - num_queries :], keys)


def read_mask(mask: Tensor | None, module: torch.nn.Module, is_causal: bool | None) -> Rule:
    """Read what a layer was handed; `is_causal` is what the layer said with it, if anything."""
    said = getattr(module, "is_causal", None) if is_causal is None else is_causal
    if mask is None:
        if said is None:
            raise InstallError(
                f"{type(module).__name__} was given no mask and does not say whether it is causal (no `is_causal`); "
                "pass the model an attention_mask"
            )
        return Rule(bool(said))
    if mask.dim() != 4:
        raise InstallError(
            f"{type(module).__name__} was given a mask of shape {tuple(mask.shape)}, not [batch, 1, queries, keys]"
        )
    if mask.dtype == CAUSAL:
        if mask.shape[2] != 1:
            raise InstallError(
                f"{type(module).__name__} combines the causal mask with one of its own, which attnlab cannot follow"
            )
        is_plain = not any(mask.stride())
        return Rule(True, None if is_plain else mask.view(torch.bool))
    if mask.dtype == torch.int64 and _has_positions(mask):
        pairs, positions = _decode_positions(mask)
        return Rule(False, pairs, is_instead=bool(said) and pairs.shape[2] > 1, positions=positions)
    allowed = mask if mask.dtype == torch.bool else _read_additive_mask(mask, module)
    if allowed.shape[2] > 1 and allowed.stride(2) == 0:
        allowed = allowed[:, :, :1]
    return Rule(False, allowed, is_instead=bool(said) and allowed.shape[2] > 1)


def _read_additive_mask(bias: Tensor, module: torch.nn.Module) -> Tensor:
    """Read a mask that is added to the scores: 0 lets a pair through, a number as good as −∞ forbids it."""
    if not bias.is_floating_point():
        raise InstallError(f"{type(module).__name__} was given a mask of {bias.dtype}; booleans or floats are needed")
    allowed = bias == 0
    # Half of the lowest number: what several masks added up to is still forbidden.
    forbidden = bias <= max(torch.finfo(bias.dtype).min / 2, -1e4)
    if not bool((allowed | forbidden).all()):
        raise InstallError(
            f"{type(module).__name__} adds a bias to its scores (ALiBi, relative positions), not only a mask; "
            "a mechanism's score has no place for it"
        )
    return allowed
