"""What is tuned: everything, the head, a prompt, a prefix or LoRA; how many numbers that is, and what to keep of it."""

from .apply import apply_tuning
from .counts import Counts, count_parameters
from .state import frozen_hash, trained_state

__all__ = ["Counts", "apply_tuning", "count_parameters", "frozen_hash", "trained_state"]
