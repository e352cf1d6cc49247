"""The tensors of a call: q, k and v with four axes and one dtype, and what is added to them."""

import torch
from torch import Tensor

from attnlab.errors import ShapeError

from .layer_input import split_heads

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""The dtypes that kernels compute with."""


def add_axes(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor with four axes and a floating-point dtype, that of autocast if it is enabled."""
    check_tensor(name, tensor)
    if not 1 <= tensor.dim() <= 4:
        raise ShapeError(f"{name} must be [batch, heads, length, head_dim]; its shape is {tuple(tensor.shape)}")
    if tensor.dtype not in DTYPES:
        known = ", ".join(str(dtype) for dtype in DTYPES)
        raise ShapeError(
            f"{name} must hold real numbers of one of the dtypes {known}, not {tensor.dtype}; convert it first, for "
            f"example with {name}.float()"
        )
    if has_autocast(tensor.device):
        tensor = tensor.to(torch.get_autocast_dtype(tensor.device.type))
    return tensor.reshape((1,) * (4 - tensor.dim()) + tuple(tensor.shape))


def check_tensor(name: str, tensor: object) -> None:
    """Refuse what is not a dense tensor of numbers: kernels read them."""
    if not isinstance(tensor, Tensor):
        raise ShapeError(f"{name} must be a torch tensor, not {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        raise ShapeError(f"{name} must be a dense tensor, not {tensor.layout}; convert it with {name}.to_dense()")
    if tensor.is_meta:
        raise ShapeError(
            f"{name} is on the device 'meta', which holds shapes without numbers; attention needs numbers: move the "
            "tensors, or the model with model.to_empty(device='cpu') and its weights, to a device such as 'cpu'"
        )


def check_devices(**tensors: Tensor | None) -> None:
    """Refuse tensors on different devices; None is passed over."""
    given = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
    if len({tensor.device for tensor in given.values()}) > 1:
        names = " and ".join(", ".join(given).rsplit(", ", 1))
        places = ", ".join(f"{name} is on {tensor.device}" for name, tensor in given.items())
        raise ShapeError(f"{names} must be on one device: {places}; move them with .to(device)")


def has_autocast(device: torch.device) -> bool:
    """Tell whether autocast is enabled on a device; torch raises an error if it has none for the device's type."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def repeat_key_heads(q: Tensor, t: Tensor) -> Tensor:
    """Repeat key or value heads for grouped-query attention."""
    if t.shape[1] == q.shape[1] or t.shape[1] == 0 or q.shape[1] % t.shape[1]:
        return t
    return t.repeat_interleave(q.shape[1] // t.shape[1], dim=1)


def check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse tensors that cannot attend to each other."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.shape[:2] == k.shape[:2] == v.shape[:2]:
        raise ShapeError(
            f"q, k and v must have the same batch and heads (fewer key heads must divide the query heads): {shapes}"
        )
    if q.shape[3] != k.shape[3]:
        raise ShapeError(f"q and k must have the same head_dim: {shapes}")
    if k.shape[2] != v.shape[2]:
        raise ShapeError(f"k and v must have the same length: {shapes}")
    if not q.dtype == k.dtype == v.dtype:
        kinds = ", ".join(f"{n} is {t.dtype}" for n, t in (("q", q), ("k", k), ("v", v)))
        raise ShapeError(f"q, k and v must have one dtype: {kinds}; convert them with .to(dtype)")
    if q.shape[3] == 0 or v.shape[3] == 0:
        raise ShapeError(f"head_dim must not be 0: {shapes}")


def split_input(x: Tensor, like: Tensor) -> Tensor:
    """Return x split by heads; refuse a shape other than that of the tensor it is added to."""
    (_, num_heads, length, width), given = like.shape, tuple(x.shape)
    if given[1:] != (length, num_heads * width):
        raise ShapeError(
            f"x must have the shape of the tensor it is added to, {tuple(like.shape)}, or [batch, length, model_dim] = "
            f"{(len(like), length, num_heads * width)}, not {given}"
        )
    return split_heads(x, num_heads)


def check_side_input(name: str, tensor: Tensor, like: Tensor) -> Tensor:
    """Return `first` with four axes; refuse a shape other than that of the tensor it is added to."""
    tensor = add_axes(name, tensor)
    if tensor.shape != like.shape:
        needed, shape = tuple(like.shape), tuple(tensor.shape)
        raise ShapeError(f"{name} must have the shape of the tensor it is added to, {needed}, not {shape}")
    return tensor.to(like)
