"""The machine a measurement was taken on: numbers of speed mean nothing without it."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Machine:
    """What decides how fast torch computes here."""

    processor: str
    num_processors: int
    num_threads: int
    torch: str

    def __str__(self) -> str:
        threads = "1 thread" if self.num_threads == 1 else f"{self.num_threads} threads"
        return f"{self.processor} × {self.num_processors}, {threads}, torch {self.torch}"


def describe(num_threads: int | None = None) -> Machine:
    """Describe this machine, for a measurement on so many threads, or on torch's own number of them."""
    return Machine(
        processor=processor(),
        num_processors=os.cpu_count() or 1,
        num_threads=num_threads or torch.get_num_threads(),
        torch=str(torch.__version__),
    )


def processor() -> str:
    """Name the processor's model as the system does, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = next((line for line in lines if line.startswith("model name")), "")
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        named = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return " ".join(named.rpartition(":")[2].split()) or platform.processor() or platform.machine()
