"""The tokens before each that a stage requests as `before`: how many there are, and how they are put together."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import MechanismError


def count_earlier(stage: Any) -> int:
    """Return how many tokens before each a values or features stage reads: none without `before`, else 1 or
    `num_before`."""
    if "before" not in stage.inputs:
        return 0
    number = stage.num_before
    if number is None:
        return 1
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise MechanismError(
            f"num_before of '{stage}' is how many tokens before each its call reads, a whole number of at least 1, not "
            f"{number!r}"
        )
    return number


def stack_earlier(stage: Any, t: Tensor, shift: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what a stage gets as `before` of t [b h n d]: the token before each, or the last `num_before` of them,
    [b h n num_before d], the nearest first.

    shift: returns the token before each, zeros if there is none. Repeated, it never crosses padding or the border of
    a packed sequence.
    """
    pieces = []
    for _ in range(count_earlier(stage)):
        t = shift(t)
        pieces.append(t)
    return pieces[0] if stage.num_before is None else torch.stack(pieces, -2)
