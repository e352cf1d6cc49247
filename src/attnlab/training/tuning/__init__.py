"""What is tuned: everything, the head, a prompt, a prefix or LoRA; how many numbers that is, and what to keep of it."""

from .apply import apply_tuning
from .counts import Counts, count_parameters
from .state import frozen_hash, trained_state
from .tuning import MODES, Mode, Tuning

__all__ = [
    "MODES", "Counts", "Mode", "Tuning", "apply_tuning", "count_parameters", "frozen_hash", "trained_state",
]  # fmt: skip
