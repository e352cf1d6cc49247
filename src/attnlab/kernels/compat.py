"""Private names of torch that kernels use, each with its reason; tests/kernels/test_compat.py fails if one breaks."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
F = TypeVar("F", bound=Callable[..., Any])


def softmax_backward_(dw: Tensor, w: Tensor, _: Tensor | None = None) -> object:
    """Turn gradients of softmax weights into gradients of scores in place: torch has no public in-place form."""
    return aten._softmax_backward_data.out(dw, w, -1, w.dtype, grad_input=dw)


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """Return the output and logsumexp of the CPU's fused pass: the public function refuses `causal` with a mask."""
    forward = aten._scaled_dot_product_flash_attention_for_cpu
    out, logsumexp = forward(q, k, v, 0.0, causal, attn_mask=mask, scale=scale)
    return out, logsumexp


def flash_attention_backward(
    grad: Tensor, saved: tuple[Tensor, ...], causal: bool, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v; `saved` are q, k, v, the output and its logsumexp."""
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    dq, dk, dv = backward(grad, *saved, 0.0, causal, attn_mask=mask, scale=scale)
    return dq, dk, dv


def mark_constant(function: F) -> F:
    """Let torch.compile treat a function's result as a constant, as torch.compiler.assume_constant_result does.

    Importing what the public function needs takes a second.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


class CountResults(TorchDispatchMode):
    """Count the numbers, and their bytes, in the result of every operation inside the `with` block; torch has no public
    mode for this."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: list[int] = []
        self.num_bytes: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        results = result if isinstance(result, tuple | list) else (result,)
        # A view, such as an expanded tensor, takes no memory.
        sizes = [(x.untyped_storage().nbytes(), x.itemsize) for x in results if isinstance(x, Tensor)]
        self.counts.append(max((size // item for size, item in sizes), default=0))
        self.num_bytes.append(max((size for size, _ in sizes), default=0))
        return result
