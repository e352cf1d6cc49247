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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from attnlab.data.cache import cache_folder
from attnlab.errors import TrainingError
from attnlab.install.products import has_tiles, low_products, products
from attnlab.tasks.crossentropy import multiplied_by

Choice = Literal["auto", "fp32", "bf16"]
PAYS = 1.1
"""How many times faster bf16 must be to be taken: it rounds."""

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
    """A number format for matrix products, whose kernels compute in it, and why it was taken."""

    name: Literal["fp32", "bf16"]
    reason: str
    by: Literal["torch", "tiles"] = "torch"

    @contextmanager
    def products(self, model: nn.Module, device: torch.device) -> Iterator[None]:
        """Compute in this format what is computed inside; weights, sums and all else stay in fp32."""
        if self.name == "fp32":
            yield
        elif self.by == "tiles":
            with low_products(model), multiplied_by(products.product):
                yield
        else:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                yield

    @property
    def sentence(self) -> str:
        """What is said of it."""
        return f"matrix products in {self.name}: {self.reason}"


def choose_precision(asked: Choice, device: torch.device) -> Precision:
    """Decide by trying; bf16 that was asked for and cannot be had is an error."""
    if asked == "fp32":
        return Precision("fp32", "as asked")
    if device.type != "cpu":
        return choose_on_gpu(asked, device)
    ratio = tried()
    if ratio is None:
        reason = "torch's bf16 products end the process here"
    else:
        reason = f"torch's bf16 products take {1 / ratio:.2f} times as long as those in fp32"
    if ratio is not None and ratio > PAYS:
        return Precision("bf16", reason)
    has_own, why = has_tiles()
    if has_own:
        return Precision("bf16", f"by attnlab's tiles, since {reason}", "tiles")
    if asked == "auto":
        return Precision("fp32", f"{reason}; {why}")
    if ratio is None:
        raise TrainingError(f"bf16 was asked for, but {reason}, and there are {why}; ask for fp32, or auto")
    return Precision("bf16", f"as asked, though {reason}")


def choose_on_gpu(asked: Choice, device: torch.device) -> Precision:
    """Ask the GPU what it has."""
    is_there = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    reason = f"the {device.type} device {'has' if is_there else 'has no'} bf16 that is known to work"
    if asked == "bf16" and not is_there:
        raise TrainingError(f"bf16 was asked for, but {reason}; ask for fp32, or auto")
    return Precision("bf16" if is_there else "fp32", reason)


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
