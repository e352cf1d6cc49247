"""Private names of torch that kernels use, each with its reason; tests/kernels/test_compat.py says when one breaks."""

from __future__ import annotations

import torch
from torch import Tensor

aten = torch.ops.aten


def softmax_backward_(dw: Tensor, w: Tensor, _: Tensor | None = None) -> object:
    """Turn gradients of softmax weights into gradients of scores in place: torch has no public in-place form."""
    return aten._softmax_backward_data.out(dw, w, -1, w.dtype, grad_input=dw)
