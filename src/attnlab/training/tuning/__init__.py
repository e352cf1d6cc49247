"""What is tuned: everything, the head, a prompt, a prefix or LoRA; how many numbers that is, and what to keep of it.

Names load on first use: the settings are read without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .apply import apply_tuning
    from .parts import Counts, count_parameters
    from .state import frozen_hash, trained_state

HOMES = {
    "apply_tuning": "apply", "Counts": "parts", "count_parameters": "parts", "frozen_hash": "state",
    "trained_state": "state",
}  # fmt: skip
"""The file of each public name."""

__all__ = ["Counts", "apply_tuning", "count_parameters", "frozen_hash", "trained_state"]

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
