"""The machine a measurement was taken on, since numbers of speed mean nothing without it, and a fault that some
machines have in bf16."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

BF16_PRODUCTS = """
import torch
x = torch.ones(1, 1, 64, 64, dtype=torch.bfloat16, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(x, x, x @ x).sum().backward()
"""
BF16_REMEDY = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
"""Keeps oneDNN from AMX, which some virtual machines announce and then do not have."""


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


@functools.cache
def bf16_fault() -> str:
    """Say what is wrong with bf16 matrix products here, and what to do; an empty string where they work.

    They are tried in a process of their own, because where they fail they take their process with them.
    """
    said = fault_of_bf16_products({})
    if not said:
        return ""
    remedy = " ".join(f"{name}={value}" for name, value in BF16_REMEDY.items())
    if fault_of_bf16_products(BF16_REMEDY):
        return f"bf16 products {said} here, with {remedy} too; use fp32"
    return f"bf16 products {said} here; set {remedy}"


def fault_of_bf16_products(variables: Mapping[str, str]) -> str:
    """Try bf16 products under these environment variables; say what they do instead of working."""
    # -P keeps a file of the working directory that happens to be called torch.py out of it.
    command = [sys.executable, "-P", "-c", BF16_PRODUCTS]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    # A signal, such as SIGILL's, is a negative number; on Windows the codes of exceptions are very large ones.
    is_killed = done.returncode < 0 or done.returncode > 255
    return "end the process" if is_killed else f"fail ({(done.stderr.splitlines() or ['without a word'])[-1]})"
