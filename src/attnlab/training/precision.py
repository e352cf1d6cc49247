"""Which number format matrix products take here: tried out, not read off the processor's list of features.

A virtual machine may announce matrix instructions that fault, and a processor may have bf16 that is slower than fp32.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from attnlab.data.cache import cache_folder
from attnlab.errors import TrainingError

Choice = Literal["auto", "fp32", "bf16"]

TRIAL = """
import time, torch
torch.set_num_threads(1)
def seconds(dtype):
    one, other = torch.randn(512, 512).to(dtype), torch.randn(2048, 512).to(dtype)
    best = float("inf")
    for _ in range(8):
        start = time.perf_counter()
        torch.nn.functional.linear(one, other)
        best = min(best, time.perf_counter() - start)
    return best
print(seconds(torch.float32) / seconds(torch.bfloat16))
"""
"""Run in a process of its own, since an instruction that faults ends it."""


@dataclass(frozen=True)
class Precision:
    """A number format for matrix products, and why it was taken."""

    name: Literal["fp32", "bf16"]
    reason: str

    def products(self, device: torch.device) -> AbstractContextManager[object]:
        """Compute in this format what is computed inside."""
        if self.name == "fp32":
            return nullcontext()
        return torch.autocast(device.type, dtype=torch.bfloat16)

    @property
    def sentence(self) -> str:
        """What is said of it."""
        return f"matrix products in {self.name}: {self.reason}"


def choose_precision(asked: Choice, device: torch.device) -> Precision:
    """Decide by trying; bf16 that was asked for and cannot be had is an error."""
    if asked == "fp32":
        return Precision("fp32", "as asked")
    works, reason = has_bf16(device)
    if works:
        return Precision("bf16", "as asked" if asked == "bf16" else reason)
    if asked == "bf16" and "slower" not in reason:
        raise TrainingError(f"bf16 was asked for, but {reason}; ask for fp32, or auto")
    return Precision("bf16", f"as asked, though {reason}") if asked == "bf16" else Precision("fp32", reason)


def has_bf16(device: torch.device) -> tuple[bool, str]:
    """Tell whether bf16 products pay on a device, and how that is known."""
    if device.type == "cuda":
        is_there = torch.cuda.is_bf16_supported(including_emulation=False)
        return is_there, f"the GPU {'has' if is_there else 'has no'} bf16"
    if device.type != "cpu":
        return False, f"bf16 was not tried on '{device.type}'"
    ratio = tried()
    if ratio is None:
        return False, "a bf16 product ends the process here (an instruction that the processor announces faults)"
    speed = f"a bf16 product takes {1 / ratio:.2f} times as long as one in fp32"
    return ratio > 1.1, speed if ratio > 1.1 else f"bf16 is slower or no faster here ({speed})"


def tried() -> float | None:
    """Return how many times faster bf16 is on this processor, None where it faults; tried once a machine."""
    file = cache_folder() / f"bf16-{machine_key()}.json"
    with suppress(OSError, ValueError, KeyError):
        kept: float | None = json.loads(file.read_text(encoding="utf-8"))["ratio"]
        return kept
    run = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, text=True, check=False)
    ratio = float(run.stdout) if run.returncode == 0 else None
    with suppress(OSError):  # what cannot be kept is tried again next time
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"ratio": ratio}), encoding="utf-8")
    return ratio


def machine_key() -> str:
    """Return a key of all that the trial depends on."""
    processor = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = "".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))
    setting = [f"{name}={value}" for name, value in sorted(environment().items())]
    return hashlib.sha256("".join([processor, torch.__version__, *setting]).encode()).hexdigest()[:16]


def environment() -> dict[str, str]:
    """Return the settings of the processor's libraries."""
    return {name: value for name, value in os.environ.items() if name.startswith(("ONEDNN_", "DNNL_", "MKL_"))}
