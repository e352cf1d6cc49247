"""A machine is described as its system names it, and bf16 is tried once, in a separate process."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnlab import machine
from attnlab.errors import RequestError
from attnlab.machine import Bf16Trial


def test_the_machine_is_named_with_its_threads_and_torch() -> None:
    shown = str(machine.describe(num_threads=1))
    assert f"{machine.processor_name()} ({machine.vector_extension()})" in shown
    assert " 1 thread," in shown
    assert f"torch {torch.__version__}" in shown


def test_unless_said_the_threads_are_torchs_own() -> None:
    assert machine.describe().num_threads == torch.get_num_threads()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("flags : sse2 avx2 avx512f amx_tile", "AMX, AVX-512"),
        ("flags : sse2 avx2 avx512f", "AVX-512"),
        ("flags : sse2 avx2", "AVX2"),
        ("Features : fp asimd", "NEON"),
        ("", "abacus"),
    ],
)
def test_the_widest_vector_instructions_are_named(line: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "instruction_set", lambda: line)
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert machine.vector_extension() == name


def test_the_processor_has_a_name_and_cores() -> None:
    assert machine.processor_name().strip()
    assert machine.num_cores() >= 1


@pytest.mark.parametrize(("size", "expected"), [("512K", 512 * 1024), ("32M", 32 * 2**20), ("", None), ("many", None)])
def test_the_size_of_a_cache_is_in_bytes(monkeypatch: pytest.MonkeyPatch, size: str, expected: int | None) -> None:
    monkeypatch.setattr(machine, "cache_sizes", lambda: {"L2": size})
    assert machine.cache_bytes.__wrapped__("L2") == expected
    assert machine.cache_bytes.__wrapped__("L9") is None


def test_the_cache_folder_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    assert machine.cache_folder() == tmp_path


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
    machine.bf16_fault.cache_clear()
    yield
    machine.bf16_fault.cache_clear()


def answering(monkeypatch: pytest.MonkeyPatch, *, plain: int, remedied: int, said: str = "") -> list[Any]:
    """Let the processes that try bf16 end with these statuses; return their commands."""
    commands: list[Any] = []

    def run(command: list[str], env: dict[str, str], **how: Any) -> SimpleNamespace:
        commands.append(command)
        is_remedied = env.get("ONEDNN_MAX_CPU_ISA") == "AVX512_CORE_BF16"
        return SimpleNamespace(returncode=remedied if is_remedied else plain, stderr=said, stdout="2.5\n")

    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr("subprocess.run", run)
    return commands


@pytest.mark.parametrize(
    ("plain", "remedied", "fault"),
    [
        (0, 0, ""),
        (-4, 0, "bf16 products end the process here; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"),
        (-4, -4, "bf16 products end the process here, with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 too; use fp32"),
        (0xC000001D, 0, "bf16 products end the process here; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"),
        (1, 1, "bf16 products fail (no bf16) here, with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 too; use fp32"),
    ],
)
def test_bf16_that_does_not_work_names_the_remedy(
    plain: int, remedied: int, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, plain=plain, remedied=remedied, said="Traceback\nno bf16")
    assert machine.bf16_fault() == fault


@pytest.mark.parametrize(
    ("status", "trial"),
    [(0, Bf16Trial("", 2.5)), (-4, Bf16Trial("end the process", 0.0))],
    ids=["works", "faults"],
)
def test_bf16_is_tried_once_per_machine(
    status: int, trial: Bf16Trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = answering(monkeypatch, plain=status, remedied=status)
    assert (machine.try_bf16(), machine.try_bf16(), len(commands)) == (trial, trial, 1)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SOMETHING_ELSE")
    assert (machine.try_bf16(), len(commands)) == (trial, 2)
    for content in ("{", json.dumps([]), json.dumps({"ratio": 1})):
        for file in tmp_path.iterdir():
            file.write_text(content, encoding="utf-8")
        commands.clear()
        assert (machine.try_bf16(), len(commands)) == (trial, 1)


def test_bf16_is_tried_in_a_process_that_can_end() -> None:
    # The tests themselves run under the remedy.
    assert machine.try_bf16().fault == ""
    assert machine.try_bf16({"MKL_X": "1", "PYTHONHOME": "/nowhere"}).fault.startswith("fail (")


def test_an_unclosed_quote_in_cxx_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ '-O3")
    with pytest.raises(RequestError, match="CXX"):
        machine.find_compiler()


@pytest.mark.parametrize("name", ["ATTNLAB_CACHE", "XDG_CACHE_HOME"])
def test_a_cache_of_nobody_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTNLAB_CACHE", raising=False)
    monkeypatch.setenv(name, "~nosuchuser/cache")
    with pytest.raises(RequestError, match="home folder"):
        machine.cache_folder()
