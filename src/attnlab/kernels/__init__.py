"""How fast: the readable reference, and faster ways to compute the same mechanism."""

from .attend import attend, initial_values, weights
from .choose import KERNELS, Explanation, explain
from .module import Attention
from .native import Compiler, compiler

__all__ = [
    "KERNELS", "Attention", "Compiler", "Explanation", "attend", "compiler", "explain", "initial_values", "weights",
]  # fmt: skip
