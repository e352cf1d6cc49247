"""A machine is named as its system names it, with the threads that were used, and its fault in bf16 is found."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnlab.kernels import machine


def test_the_machine_is_named_with_its_threads_and_torch() -> None:
    shown = str(machine.describe(num_threads=1))
    assert machine.processor() in shown
    assert " 1 thread," in shown
    assert f"torch {torch.__version__}" in shown


def test_unless_said_the_threads_are_torchs_own() -> None:
    assert machine.describe().num_threads == torch.get_num_threads()


def test_the_processor_has_a_name() -> None:
    assert machine.processor().strip()


def answering(monkeypatch: pytest.MonkeyPatch, *, plain: int, remedied: int, said: str = "") -> None:
    """Let the processes that try bf16 end with these statuses."""

    def run(command: list[str], env: dict[str, str], **how: Any) -> SimpleNamespace:
        is_remedied = env.get("ONEDNN_MAX_CPU_ISA") == "AVX512_CORE_BF16"
        return SimpleNamespace(returncode=remedied if is_remedied else plain, stderr=said)

    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr("subprocess.run", run)
    machine.bf16_fault.cache_clear()


@pytest.fixture
def _afresh() -> Iterator[None]:
    yield
    machine.bf16_fault.cache_clear()


@pytest.mark.usefixtures("_afresh")
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


def test_bf16_is_tried_in_a_process_that_can_end() -> None:
    # The tests themselves run under the remedy.
    assert machine.fault_of_bf16_products({}) == ""
    assert machine.fault_of_bf16_products({"PYTHONHOME": "/nowhere"}).startswith("fail (")
