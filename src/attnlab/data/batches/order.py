"""A seeded shuffle that is a function: which example stands at a place of an epoch, without a stored permutation.

A Feistel network permutes the numbers below a power of two; where it leads past the last example it is applied
again until it does not (cycle walking, Black & Rogaway 2002). A look-up costs the same wherever it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from ..draws import Keys, keys_of, mix, name_key, permutations

NUM_ROUNDS = 8
FEW = 64
"""So few examples are drawn an order of as a whole: a small network has few distinct permutations."""
PURPOSE = name_key("order")


@dataclass(frozen=True)
class Order:
    """The order of examples in every epoch of a seed: each example once an epoch, another order each time."""

    num_examples: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_examples < 1:
            raise DataError(f"an order needs at least one example; it got {self.num_examples}")

    def at(self, epoch: int, places: ArrayLike) -> NDArray[np.int64]:
        """Return the examples at places of an epoch, counted from 0."""
        given = np.asarray(places, dtype=np.int64)
        if given.size and not 0 <= given.min() <= given.max() < self.num_examples:
            raise DataError(
                f"places of an epoch run from 0 to {self.num_examples - 1}; there came {given.min()} to {given.max()}"
            )
        if self.num_examples <= FEW:
            return permutations(keys_of(PURPOSE, self.seed, epoch), self.num_examples)[given]
        bits = (self.num_examples - 1).bit_length()
        keys = keys_of(PURPOSE, self.seed, epoch, np.arange(NUM_ROUNDS))
        numbers = given.reshape(-1).astype(np.uint64)
        walking = np.arange(numbers.size)
        while walking.size:
            numbers[walking] = permute(numbers[walking], bits, keys)
            walking = walking[numbers[walking] >= self.num_examples]
        return numbers.astype(np.int64).reshape(given.shape)


def permute(numbers: Keys, bits: int, keys: Keys) -> Keys:
    """Permute the numbers below 2^bits by a Feistel network with a round for each key."""
    low_bits = np.uint64(bits // 2)
    high_bits = np.uint64(bits) - low_bits
    left, right = numbers >> low_bits, numbers & _ones(low_bits)
    widths = (high_bits, low_bits)
    for number, key in enumerate(keys):
        # The halves change places each round, and with them their widths where these differ.
        left, right = right, left ^ (mix(right ^ key) & _ones(widths[number % 2]))
    # After an even number of rounds each half is as wide as at first.
    return (left << low_bits) | right


def _ones(count: np.uint64) -> np.uint64:
    return np.uint64((1 << int(count)) - 1)
