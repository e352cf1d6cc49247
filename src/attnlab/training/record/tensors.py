"""A file of named tensors in the safetensors format, hashed while it is written.

The library reads it. Its writer is not used: it does not hash, hides the error of the disk, and refuses tensors that
share storage.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnlab.checksums import DamageError
from attnlab.errors import TrainingError

from .files import Seal, write_through

METADATA = "__metadata__"

DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
    torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8",
    torch.bool: "BOOL", torch.complex64: "C64",
}  # fmt: skip
"""The names of dtypes in the format."""


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> Seal:
    """Write tensors and sync them to the disk; views and tensors that share storage are written in full."""
    for name, tensor in tensors.items():
        _check(path, name, tensor)
    # Widest first keeps every tensor aligned, as the format requires.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    return write_through(path, _pieces(tensors, order))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file with a verified seal; the tensors are copies, not views of the file."""
    try:
        return {name: tensor.clone() for name, tensor in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise DamageError(f"{path.name} is not a file of tensors ({error})") from error


def _pieces(tensors: dict[str, Tensor], order: list[str]) -> Iterator[bytes | memoryview]:
    yield _header(tensors, order)
    for name in order:
        if tensors[name].numel():
            dense = tensors[name].detach().cpu().resolve_conj().resolve_neg().contiguous()
            # A single element is contiguous with any stride, but only stride 1 can be viewed as bytes.
            flat = dense.as_strided((dense.numel(),), (1,))
            yield flat.view(torch.uint8).numpy().data


def _header(tensors: dict[str, Tensor], order: list[str]) -> bytes:
    content: dict[str, object] = {METADATA: {"format": "pt"}}
    offset = 0
    for name in order:
        tensor = tensors[name]
        end = offset + tensor.numel() * tensor.element_size()
        content[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _check(path: Path, name: str, tensor: Tensor) -> None:
    if name == METADATA:
        raise TrainingError(f"a tensor of {path.name} is named {METADATA}, which safetensors reserves; rename it")
    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized or tensor.dtype not in DTYPES:
        raise TrainingError(
            f"the tensor '{name}' of {path.name} is {tensor.dtype} with layout {tensor.layout} on {tensor.device}; a "
            "checkpoint takes dense tensors on a device, of the usual dtypes"
        )
