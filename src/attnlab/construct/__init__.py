"""What can it do? Queries and keys that make attention select, average and extract, or a proof that none can."""

from .argmax import Argmax, argmax
from .average import average
from .extraction import Extraction, extract
from .focus import Focus
from .placement import Placement, place_key
from .selection import Selections, select, select_all
from .setting import EXAMPLE_KEYS, Setting
from .strength import Strength, strength

__all__ = [
    "EXAMPLE_KEYS", "Argmax", "Extraction", "Focus", "Placement", "Selections", "Setting", "Strength", "argmax",
    "average", "extract", "place_key", "select", "select_all", "strength",
]  # fmt: skip
