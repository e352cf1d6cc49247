"""Whether runs of two arms are pairs in fact: the same initial weights, batches and evaluation set for each seed.

A run stores hashes of what it shares with the other arm's; an analysis is paired only where all of them agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.errors import StatisticsError

Hashes = Mapping[str, str]
"""What is hashed, such as `init`, `batches`, `evaluation`, and its hash."""


@dataclass(frozen=True)
class Pairing:
    """Where two arms are no pairs: (seed, what) for each hash that differs or is missing; none is good."""

    seeds: tuple[str, ...]
    differences: tuple[tuple[str, str], ...]

    @property
    def is_paired(self) -> bool:
        """Whether every seed has the same hashes in both arms."""
        return not self.differences

    @property
    def reason(self) -> str:
        """Say why the arms are no pairs, in words that fit NOT COMPARABLE (…); nothing where they are."""
        if self.is_paired:
            return ""
        seed, what = self.differences[0]
        others = len(self.differences) - 1
        return f"not paired: {what} differs at seed {seed}{f', and {others} more' * bool(others)}"

    def require(self) -> None:
        """Refuse a paired analysis of arms that are no pairs."""
        if not self.is_paired:
            raise StatisticsError(
                f"these runs are {self.reason}. Run both arms with one version and the same data, or compare with "
                "paired=False"
            )


def check_pairing(baseline: Mapping[str, Hashes], variant: Mapping[str, Hashes]) -> Pairing:
    """Compare the hashes of two arms' runs, by seed."""
    seeds = tuple(dict.fromkeys([*map(str, baseline), *map(str, variant)]))
    ours = {str(seed): hashes for seed, hashes in baseline.items()}
    theirs = {str(seed): hashes for seed, hashes in variant.items()}
    found: list[tuple[str, str]] = []
    for seed in seeds:
        if seed not in ours or seed not in theirs:
            found.append((seed, "which arm has the seed"))
            continue
        names = dict.fromkeys([*ours[seed], *theirs[seed]])
        # Two runs that stored nothing have shown nothing.
        if not names:
            found.append((seed, "every hash is missing, which"))
        found += [(seed, name) for name in names if ours[seed].get(name, "") != theirs[seed].get(name, " ")]
    return Pairing(seeds, tuple(found))
