"""The processes of one run: alone, or several under torchrun that share each batch (gloo on CPU, nccl on GPU)."""

from __future__ import annotations

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

WAIT = timedelta(hours=6)
"""How long a process waits for another, which may be evaluating alone."""


@dataclass(frozen=True)
class Ranks:
    """This process among those of a run."""

    rank: int = 0
    num: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and evaluates."""
        return self.rank == 0

    def share(self, objective: nn.Module, has_unused: Callable[[], bool]) -> nn.Module:
        """Let processes add up their gradients; they must know whether a loss leaves weights out, such as a pooler."""
        if self.num == 1:
            return objective
        return DistributedDataParallel(objective, find_unused_parameters=has_unused())

    def apart(self, objective: nn.Module) -> AbstractContextManager[object]:
        """Keep gradients to this process for now, where a pass is not the last of an update."""
        return objective.no_sync() if isinstance(objective, DistributedDataParallel) else nullcontext()

    def total(self, *values: float) -> list[float]:
        """Add numbers up over all processes."""
        if self.num == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(summed)
        return [float(value) for value in summed]

    def told(self, value: Any) -> Any:
        """Return the first process's value in every process."""
        if self.num == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]


def choose_device() -> torch.device:
    """Return the GPU of this process, or the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


@contextmanager
def joined(device: torch.device | None = None) -> Iterator[Ranks]:
    """Join the processes that torchrun has started, if it has."""
    device = device or choose_device()
    num = int(os.environ.get("WORLD_SIZE", "1"))
    if num == 1:
        yield Ranks(device=device)
        return
    if dist.is_initialized():
        raise TrainingError("this process is in a process group already; attnlab starts its own for a run")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=WAIT)
    try:
        yield Ranks(dist.get_rank(), num, device)
    finally:
        dist.destroy_process_group()
