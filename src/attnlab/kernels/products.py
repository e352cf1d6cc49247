"""Matrix products whose factors are rounded to bf16 and whose sums are fp32, by the processor's tiles: products.cpp.

The same factors give the same bits on any number of threads, and a row's result does not depend on the other rows.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnlab.errors import KernelError, ShapeError

from . import amx

INT, POINTER = ctypes.c_int64, ctypes.c_void_p


class Factor(ctypes.Structure):
    """The Factor of products.cpp."""

    _fields_ = (("data", POINTER), ("stride", INT), ("is_bf16", INT), ("is_along", INT), ("sums", POINTER))


class Product(ctypes.Structure):
    """The Product of products.cpp."""

    _fields_ = (
        *((name, INT) for name in ("m", "n", "k")),
        ("a", Factor),
        ("b", Factor),
        ("c", POINTER),
        ("stride", INT),
        ("bias", POINTER),
        ("accumulate", INT),
        ("threads", INT),
    )


def product(
    a: Tensor,
    b: Tensor,
    out: Tensor | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    accumulate: bool = False,
) -> Tensor:
    """Return op(a) @ op(b) in fp32, factors [m, k] and [k, n] rounded to bf16; with `accumulate` added to `out`.

    Factors are fp32 or bf16 on the CPU; one whose rows and columns both have gaps is copied first. `out` shares no
    memory with them. Gradients do not pass: `linear` is for that.
    """
    a, b = (a.t() if transpose_a else a), (b.t() if transpose_b else b)
    check_factors(a, b)
    if out is None:
        if accumulate:
            raise KernelError("accumulate adds to 'out', and no 'out' was given")
        out = torch.empty(a.shape[0], b.shape[1])
    check_out(out, a, b)
    run(a, b, out, out if accumulate else None)
    return out


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, is_transposed: bool = False) -> Tensor:
    """Return x @ weightᵀ + bias in fp32, products by tiles here and in the gradients.

    x: [..., k]. weight: [n, k], or [k, n] where it is transposed, as GPT-2's Conv1D keeps it.
    """
    width = weight.shape[0 if is_transposed else 1]
    if x.dim() < 1 or x.shape[-1] != width:
        raise ShapeError(f"the input is {list(x.shape)}, but a weight of {list(weight.shape)} needs a width of {width}")
    result: Tensor = Linear.apply(x, weight, bias, is_transposed)  # type: ignore[no-untyped-call]
    return result


# torch.compile cannot trace ctypes; this mark, which torch.compiler.disable leaves, makes it step around.
linear._torchdynamo_disable = True  # type: ignore[attr-defined]


class Linear(torch.autograd.Function):
    """y = x Wᵀ + b; keeps x and W."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, is_transposed: bool) -> Tensor:
        """Return y, which starts from the bias and so passes through memory once."""
        ctx.save_for_backward(x, weight)
        ctx.is_transposed = is_transposed
        matrix = weight if is_transposed else weight.t()
        rows = flat(x)
        check_factors(rows, matrix)
        y = torch.empty(*x.shape[:-1], matrix.shape[1])
        run(rows, matrix, flat(y), None if bias is None else bias.contiguous())
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of what needs one."""
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        matrix = weight.t() if ctx.is_transposed else weight
        slope = flat(grad)
        grad_x = grad_weight = grad_bias = None
        if needs_x:
            grad_x = torch.empty(x.shape)
            run(slope, matrix, flat(grad_x))
        is_summed = needs_bias and needs_weight and not is_dense(slope, 0)
        if needs_bias:
            grad_bias = torch.zeros(matrix.shape[0]) if is_summed else slope.sum(0)
        if needs_weight:
            grad_weight = torch.empty(weight.shape)
            out = grad_weight.t() if ctx.is_transposed else grad_weight
            run(slope.t(), flat(x), out, sums=grad_bias if is_summed else None)
        return grad_x, grad_weight, grad_bias, None


def flat(x: Tensor) -> Tensor:
    """Return [..., k] as [rows, k]."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def is_dense(x: Tensor, axis: int) -> bool:
    """Tell whether what follows on an axis lies side by side."""
    return x.stride(axis) == 1 or x.shape[axis] == 1


def check_factors(a: Tensor, b: Tensor) -> None:
    """Refuse what cannot be multiplied."""
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ShapeError(f"a product needs [m, k] and [k, n], not {list(a.shape)} and {list(b.shape)}")
    for name, factor in (("first", a), ("second", b)):
        if factor.dtype not in (torch.float32, torch.bfloat16) or factor.device.type != "cpu":
            raise KernelError(
                f"the {name} factor is {factor.dtype} on '{factor.device}'; tiles multiply torch.float32 or "
                "torch.bfloat16 on the CPU"
            )


def check_out(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Refuse what the result cannot be written to."""
    shape = [a.shape[0], b.shape[1]]
    if list(out.shape) != shape or out.dtype != torch.float32 or out.device.type != "cpu":
        raise ShapeError(f"'out' is {out.dtype} {list(out.shape)} on '{out.device}', needed is torch.float32 {shape}")
    if not is_dense(out, 1) and not is_dense(out, 0):
        raise ShapeError(f"'out' has the strides {out.stride()}: neither its rows nor its columns lie without gaps")
    if any(stride == 0 and size > 1 for stride, size in zip(out.stride(), out.shape, strict=True)):
        raise ShapeError("'out' is an expanded tensor, whose rows are one; give one with memory of its own")


def factor_of(x: Tensor, steps: int, sums: Tensor | None) -> Factor:
    """Describe a factor; `steps` is the axis that is summed over."""
    is_along = is_dense(x, steps)
    stride = x.stride(1 - steps) if is_along else x.stride(steps)
    return Factor(x.data_ptr(), stride, x.dtype == torch.bfloat16, is_along, pointer(sums))


def pointer(x: Tensor | None) -> int | None:
    """Return where a tensor's numbers are."""
    return None if x is None else x.data_ptr()


def run(a: Tensor, b: Tensor, out: Tensor, start: Tensor | None = None, sums: Tensor | None = None) -> None:
    """Multiply into `out`.

    start: what `out` starts from: itself, or where its rows are dense a bias for its columns; without it, 0.
    sums: takes the sums of a over k, not rounded; only where a is dense along m.
    """
    library = amx.loops()
    if library is None:
        raise KernelError(f"{amx.has_tiles()[1]}; use torch's own product")
    a, b = dense(a), dense(b)
    (m, k), n = a.shape, b.shape[1]
    left, right, stride = factor_of(a, 1, sums), factor_of(b, 0, None), out.stride(0)
    if not is_dense(out, 1):  # its transpose is, which is the product of the factors' transposes
        left, right, m, n, stride = right, left, n, m, out.stride(1)
    accumulate = start is out
    bias = None if accumulate else pointer(start)
    call = Product(m, n, k, left, right, out.data_ptr(), stride, bias, accumulate, torch.get_num_threads())
    library.multiply_bf16(ctypes.byref(call))


def dense(x: Tensor) -> Tensor:
    """Return a matrix with rows or columns without gaps: itself, or a copy."""
    return x if is_dense(x, 1) or is_dense(x, 0) else x.contiguous()
