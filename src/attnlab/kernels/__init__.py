"""Kernels: the readable reference, and faster ways to compute the same mechanism."""

from .attend import attend, attend_with_weights, weights
from .choose import KERNELS, Explanation, explain
from .cpu.native import Loops, describe_loops
from .module import Attention
from .parameters import initial_values

__all__ = [
    "KERNELS", "Attention", "Explanation", "Loops", "attend", "attend_with_weights", "describe_loops", "explain",
    "initial_values", "weights",
]  # fmt: skip
