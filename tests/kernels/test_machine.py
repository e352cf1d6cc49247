"""A machine is named as its system names it, with the threads that were used."""

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
