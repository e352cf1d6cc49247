"""The token ids as `attend` gets them: integers [b k], one for each key, for stages that request `tokens`."""

from collections.abc import Mapping

import torch
from torch import Tensor

from attnlab.errors import RequestError, ShapeError
from attnlab.mechanisms import Mechanism


def as_tokens(mechanism: Mechanism, given: Tensor | None, k: Tensor) -> Tensor | None:
    """Return the token ids [b k] if they are given; refuse a call without those that a stage needs."""
    needing = [stage for stage in mechanism.find_stages_needing("tokens") if stage.inputs["tokens"]]
    if given is None:
        if needing:
            raise RequestError(
                f"'{needing[0]}' needs the token ids, and this call has none: pass tokens= [batch, length]"
            )
        return None
    if not isinstance(given, Tensor) or given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise ShapeError(f"tokens must be a tensor of integers, not {kind}")
    batch, length = k.shape[0], k.shape[2]
    if given.dim() not in (1, 2) or given.shape[-1] != length or (given.dim() == 2 and len(given) not in (1, batch)):
        raise ShapeError(
            f"tokens must be [batch, length] = {(batch, length)}, one id for each key, not {tuple(given.shape)}"
        )
    return given.to(k.device, torch.long).expand(batch, -1)


def choose_unused_tokens(mechanism: Mechanism, k: Tensor) -> Tensor | None:
    """Return ids for a result that no values enter, if only stages on the values need tokens."""
    targets = {getattr(stage, "target", "") for stage in mechanism.find_stages_needing("tokens")}
    return torch.zeros(1, k.shape[-2], dtype=torch.long, device=k.device) if targets == {"v"} else None


def find_vocab_size(
    mechanism: Mechanism, sizes: tuple[int, int, int], tokens: Tensor | None, given: Mapping[str, Tensor] | None
) -> int:
    """Return the number of token ids: that of the given parameters, or the largest id and 1."""
    if tokens is None or not mechanism.find_stages_needing("tokens"):
        return 1
    # The axis of the vocabulary is the one that a larger vocabulary makes longer.
    one, two = (mechanism.parameters(*sizes, vocab_size=size) for size in (1, 2))
    for name, parameter in one.items():
        for axis, (short, long) in enumerate(zip(parameter.shape, two[name].shape, strict=True)):
            if short != long and given is not None and name in given and given[name].dim() == len(parameter.shape):
                return _check_ids(tokens, given[name].shape[axis], name)
    if tokens.numel() and (lowest := int(tokens.min())) < 0:
        raise RequestError(f"token ids are not negative, and tokens holds {lowest}")
    return int(tokens.max()) + 1 if tokens.numel() else 1


def _check_ids(tokens: Tensor, vocab_size: int, name: str) -> int:
    """Refuse ids that a table does not have."""
    if tokens.numel() and not torch.compiler.is_compiling():
        low, high = int(tokens.min()), int(tokens.max())
        if low < 0 or high >= vocab_size:
            raise RequestError(
                f"parameter '{name}' has rows for the token ids 0 to {vocab_size - 1}, and tokens holds "
                f"{low if low < 0 else high}; attnlab.Attention takes vocab_size="
            )
    return vocab_size
