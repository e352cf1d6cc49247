"""Checks that runs of two arms are pairs: the same initial weights, batches and evaluation set for each seed."""

from collections.abc import Mapping
from dataclasses import dataclass

from attnlab.errors import StatisticsError

Hashes = Mapping[str, str]
"""Hashes of what a run shares with the other arm's, by name, such as `init`, `batches`, `evaluation`."""


@dataclass(frozen=True)
class Pairing:
    """The hashes that differ or are missing, as (seed, name)."""

    differences: tuple[tuple[str, str], ...]

    @property
    def is_paired(self) -> bool:
        """Whether every seed has the same hashes in both arms."""
        return not self.differences

    @property
    def reason(self) -> str:
        """Why the arms are not paired, in words that fit NOT COMPARABLE (…); empty if they are."""
        if self.is_paired:
            return ""
        seed, what = self.differences[0]
        others = len(self.differences) - 1
        return f"not paired: {what} differs at seed {seed}{f', and {others} more' * bool(others)}"

    def require(self) -> None:
        """Raise an error if the arms are not paired."""
        if not self.is_paired:
            raise StatisticsError(
                f"these runs are {self.reason}. Run both arms with the same version and the same data, or compare with "
                "paired=False"
            )


def check_pairing(baseline: Mapping[str, Hashes], variant: Mapping[str, Hashes]) -> Pairing:
    """Compare the hashes of two arms' runs, by seed."""
    first, second = ({str(seed): hashes for seed, hashes in arm.items()} for arm in (baseline, variant))
    differences: list[tuple[str, str]] = []
    for seed in dict.fromkeys([*first, *second]):
        if seed not in first or seed not in second:
            differences.append((seed, "which arm has the seed"))
            continue
        names = dict.fromkeys([*first[seed], *second[seed]])
        if not names:
            differences.append((seed, "every hash is missing, which"))
        differences += [(seed, name) for name in names if first[seed].get(name, "") != second[seed].get(name, " ")]
    return Pairing(tuple(differences))
