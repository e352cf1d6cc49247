"""The processes of one run: one, or several under torchrun that share each batch (gloo on CPU, nccl on GPU)."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from attnlab.errors import TrainingError
from attnlab.inputs import is_whole_number

WAIT = timedelta(hours=6)
"""Timeout for the other processes, since the first one evaluates alone."""


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, the number of processes, and its device."""

    rank: int = 0
    num: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this process writes and evaluates."""
        return self.rank == 0

    def wrap(self, objective: nn.Module, has_unused: Callable[[], bool]) -> nn.Module:
        """Wrap an objective so that gradients are averaged; has_unused: whether its loss ignores some weights."""
        if self.num == 1:
            return objective
        return DistributedDataParallel(objective, find_unused_parameters=has_unused())

    def no_sync(self, objective: nn.Module) -> AbstractContextManager[object]:
        """Return a context without averaging, for all but the last pass of an update."""
        return objective.no_sync() if isinstance(objective, DistributedDataParallel) else nullcontext()

    def sum(self, *values: float) -> list[float]:
        """Sum numbers over all processes."""
        if self.num == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(summed)
        return [float(value) for value in summed]

    def broadcast(self, value: Any) -> Any:
        """Return the first process's value in every process."""
        if self.num == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]


@contextmanager
def join_ranks() -> Iterator[Ranks]:
    """Join the processes that torchrun started, if any; each uses its GPU, or the CPU."""
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", _read_variable("LOCAL_RANK", 0)) if has_gpu else torch.device("cpu")
    num = _read_variable("WORLD_SIZE", 1)
    if num <= 1:
        yield Ranks(device=device)
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise TrainingError(
            f"WORLD_SIZE is {num}, and {' and '.join(missing)} not set; start the processes with torchrun, or unset "
            "WORLD_SIZE"
        )
    _read_variable("RANK", 0)
    _read_variable("MASTER_PORT", 0)
    if dist.is_initialized():
        raise TrainingError("this process is already in a process group; attnlab creates its own for a run")
    dist.init_process_group("nccl" if has_gpu else "gloo", timeout=WAIT)
    try:
        yield Ranks(dist.get_rank(), num, device)
    finally:
        dist.destroy_process_group()


def _read_variable(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not is_whole_number(text):
        raise TrainingError(f"the environment variable {name} is {text!r}, not a whole number; torchrun sets it")
    return int(text)
