"""The number format of matrix products in training: bf16 if it works and is faster here, else fp32."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch

from attnlab.errors import TrainingError
from attnlab.machine import decide_bf16, try_bf16

Choice = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True)
class Precision:
    """A number format for matrix products, and why it was chosen."""

    name: Literal["fp32", "bf16"]
    reason: str

    def autocast(self, device: torch.device) -> AbstractContextManager[object]:
        """Return a context in which matrix products have this format; weights and sums stay in fp32."""
        return nullcontext() if self.name == "fp32" else torch.autocast(device.type, dtype=torch.bfloat16)

    @property
    def sentence(self) -> str:
        """The choice and its reason, for the user."""
        return f"matrix products in {self.name}: {self.reason}"


def choose_precision(choice: Choice, device: torch.device) -> Precision:
    """Choose by trying; bf16 that is requested but does not work is an error."""
    if choice == "fp32":
        return Precision("fp32", "as requested")
    if device.type == "cpu":
        pays, reason = decide_bf16()
    else:
        pays = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        reason = f"the {device.type} device {'supports' if pays else 'does not support'} bf16"
    if pays or choice == "auto":
        return Precision("bf16" if pays else "fp32", reason)
    if device.type != "cpu" or try_bf16().fault:
        raise TrainingError(f"bf16 was requested, but {reason}; choose fp32 or auto")
    return Precision("bf16", f"as requested, although {reason}")
