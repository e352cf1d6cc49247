"""The exponentials of a vocabulary head's logits, tile by tile: by torch, or by compiled loops in one pass.

shift' = max(shift, max_j s_j), s_j ← exp(s_j − shift'), total' = total·exp(shift − shift') + Σ_j s_j for each row.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from attnlab.kernels.cpu import native

Exponentiate: TypeAlias = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Turns logits [r k] into their exponentials in place; returns the new shift and total [r]."""

COMPILED_FROM = 2**22
"""Logits of a call from which on compiled loops are used: torch needs a few milliseconds for fewer, for which a small
run must not wait for a compiler."""


def choose_exponentials(device: str, num_logits: int) -> Exponentiate:
    """Return how a call with so many logits computes their exponentials."""
    if device != "cpu" or num_logits < COMPILED_FROM:
        return exponentiate
    if native.explain_missing() is not None:
        native.warn_missing()
        return exponentiate
    return exponentiate_by_loops


def exponentiate(logits: Tensor, shift: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the exponentials by torch."""
    previous, shift = shift, torch.maximum(shift, logits.amax(1))
    logits.sub_(shift[:, None]).exp_()
    return shift, total * (previous - shift).exp_() + logits.sum(1)


def exponentiate_by_loops(logits: Tensor, shift: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the exponentials by the compiled loops; a row with NaN or +∞ has the total NaN."""
    shift, total = shift.clone(), total.clone()
    native.exponentiate(logits, shift, total)
    return shift, total
