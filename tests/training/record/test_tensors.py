"""A file of tensors holds every tensor to the bit, whatever its dtype, shape, strides and storage."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from torch import Tensor

from attnlab.checksums import DamageError
from attnlab.errors import TrainingError
from attnlab.training.record.files import Seal
from attnlab.training.record.tensors import DTYPES, read_tensors, write_tensors

NAMES = [str(dtype).removeprefix("torch.") for dtype in DTYPES]


def bits(tensor: Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    whole = tensor.detach().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg().flatten()
    return tensor.dtype, tensor.shape, bytes(whole.view(torch.uint8).tolist()) if whole.numel() else b""


def comes_back(path: Path, tensors: dict[str, Tensor]) -> bool:
    seal = write_tensors(path, tensors)
    assert seal == Seal.of(path)
    found = read_tensors(path)
    return {name: bits(tensor) for name, tensor in found.items()} == {
        name: bits(tensor) for name, tensor in tensors.items()
    }


def any_bits(dtype: torch.dtype, shape: list[int], seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    width = torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (*shape, width), dtype=torch.uint8, generator=generator)
    return raw.view(dtype).reshape(shape)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.dictionaries(
        st.text(max_size=20).filter(lambda name: name != "__metadata__"),
        st.tuples(st.sampled_from(list(DTYPES)), st.lists(st.integers(0, 4), max_size=3), st.integers(0, 2**31)),
        max_size=6,
    )
)
def test_any_tensors_come_back(tmp_path: Path, content: dict[str, tuple[torch.dtype, list[int], int]]) -> None:
    assert comes_back(tmp_path / "file", {name: any_bits(*spec) for name, spec in content.items()})


@pytest.mark.parametrize("dtype", list(DTYPES), ids=NAMES)
def test_every_dtype_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    tensors = {"0-dim": any_bits(dtype, [], 1), "empty": any_bits(dtype, [0, 3], 2), "full": any_bits(dtype, [3, 5], 3)}
    assert comes_back(tmp_path / "file", tensors)


def test_nan_keeps_its_payload(tmp_path: Path) -> None:
    odd = torch.tensor([0x7FC1, 0x7F81, -0x3F, -0x8000], dtype=torch.int16).view(torch.bfloat16)
    assert odd.isnan().tolist() == [True, True, True, False]
    assert comes_back(tmp_path / "file", {"odd": odd})


def test_views_and_shared_storage(tmp_path: Path) -> None:
    whole = torch.arange(24.0).reshape(4, 6).requires_grad_()
    tensors = {
        "whole": whole,
        "tied": whole,
        "parameter": torch.nn.Parameter(whole),
        "transposed": whole.T,
        "strided": whole[::2, 1::3],
        "row": whole[1],
        "expanded": torch.tensor(3.0).expand(2, 5),
        "conjugate": torch.tensor([1 + 2j], dtype=torch.complex64).conj(),
        "imaginary": torch.tensor([1 + 2j], dtype=torch.complex64).conj().imag,
        "channels last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    assert comes_back(tmp_path / "file", tensors)


def test_what_is_read_is_not_tied_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_tensors(path, {"w": torch.arange(5000.0)})
    found = read_tensors(path)["w"]
    path.write_bytes(b"\0" * path.stat().st_size)
    assert torch.equal(found, torch.arange(5000.0))


def test_others_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_tensors(path, {"w": torch.arange(3), "b": torch.tensor(1.0, dtype=torch.bfloat16)})
    with safe_open(path, framework="pt") as file:
        assert sorted(file.keys()) == ["b", "w"]
        assert file.metadata() == {"format": "pt"}
        assert file.get_tensor("w").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("__metadata__", torch.zeros(1), "safetensors reserves"),
        ("w", torch.zeros(2, 2).to_sparse(), "'w' of file is torch.float32 with layout torch.sparse_coo"),
        ("w", torch.zeros(2, device="meta"), "on meta"),
        ("w", torch.zeros(2, dtype=torch.complex128), "'w' of file is torch.complex128"),
    ],
    ids=["reserved name", "sparse", "meta", "complex128"],
)
def test_what_the_file_cannot_hold(tmp_path: Path, name: str, tensor: Tensor, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        write_tensors(tmp_path / "file", {name: tensor})


def test_a_file_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("something else")
    with pytest.raises(DamageError, match="file is not a file of tensors"):
        read_tensors(tmp_path / "file")
