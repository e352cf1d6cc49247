"""Kernels: the readable reference, and faster ways to compute the same mechanism."""

from .attend import attend, initial_values, weights
from .choose import KERNELS, Explanation, explain
from .cpu.native import Compiler, compiler
from .module import Attention

__all__ = [
    "KERNELS", "Attention", "Compiler", "Explanation", "attend", "compiler", "explain", "initial_values", "weights",
]  # fmt: skip
