"""Probes: generated sequences, each for one ability of a mechanism."""

from collections.abc import Mapping

from .averaging import Averaging
from .copying import Copy, SelectiveCopying
from .incontext import FuzzyRecall, InContextRecall, NoisyRecall
from .independent import Independent
from .induction import Induction
from .mqar import Recall
from .probe import IGNORED, Probe
from .storage import Compression, Memorization
from .tracking import Parity, Permutations

PROBES: Mapping[str, type[Probe]] = {
    kind.NAME: kind
    for kind in (
        Recall, Copy, Induction, Averaging, Independent, InContextRecall, NoisyRecall, FuzzyRecall, SelectiveCopying,
        Memorization, Compression, Parity, Permutations,
    )
}  # fmt: skip
"""All probes by name."""

__all__ = [
    "IGNORED", "PROBES", "Averaging", "Compression", "Copy", "FuzzyRecall", "InContextRecall", "Independent",
    "Induction", "Memorization", "NoisyRecall", "Parity", "Permutations", "Probe", "Recall", "SelectiveCopying",
]  # fmt: skip
