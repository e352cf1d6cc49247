"""Queries and keys that make attention select, average and extract, or a proof that none exist."""

from .argmax import ArgmaxResult, argmax
from .extraction import Extraction, extract
from .focus import Focus, average, select
from .placement import Placement, place_key
from .problem import EXAMPLE_KEYS, ConstructionProblem
from .selection import Selections, select_all
from .strength import Strength, strength

__all__ = [
    "EXAMPLE_KEYS", "ArgmaxResult", "ConstructionProblem", "Extraction", "Focus", "Placement", "Selections", "Strength",
    "argmax", "average", "extract", "place_key", "select", "select_all", "strength",
]  # fmt: skip
