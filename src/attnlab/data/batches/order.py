"""A seeded shuffle as a function: the example at a position of an epoch, without storing a permutation.

A Feistel network permutes the integers below a power of two; if the result exceeds the last example, the network is
applied again (cycle walking, Black & Rogaway 2002). Every look-up costs the same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnlab.errors import DataError

from ..draws import Keys, draw_permutations, keys_of, mix, name_key

NUM_ROUNDS = 8
FEW = 64
"""Up to this many examples a whole permutation is drawn, since a small network has few distinct permutations."""
PURPOSE = name_key("order")


@dataclass(frozen=True)
class Order:
    """The order of examples for a seed: each example once per epoch, in a different order in every epoch."""

    num_examples: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_examples < 1:
            raise DataError(f"an order needs at least one example; got {self.num_examples}")

    def at(self, epoch: int, places: ArrayLike) -> NDArray[np.int64]:
        """Return the examples at these places of an epoch, counted from 0."""
        chosen = np.asarray(places, dtype=np.int64)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.num_examples:
            raise DataError(
                f"places of an epoch run from 0 to {self.num_examples - 1}; got {chosen.min()} to {chosen.max()}"
            )
        if self.num_examples <= FEW:
            return draw_permutations(keys_of(PURPOSE, self.seed, epoch), self.num_examples)[chosen]
        bits = (self.num_examples - 1).bit_length()
        keys = keys_of(PURPOSE, self.seed, epoch, np.arange(NUM_ROUNDS))
        numbers = chosen.reshape(-1).astype(np.uint64)
        walking = np.arange(numbers.size)
        while walking.size:
            numbers[walking] = _permute(numbers[walking], bits, keys)
            walking = walking[numbers[walking] >= self.num_examples]
        return numbers.astype(np.int64).reshape(chosen.shape)


def _permute(numbers: Keys, bits: int, keys: Keys) -> Keys:
    """Permute the integers below 2^bits by a Feistel network with one round per key."""
    low_bits = np.uint64(bits // 2)
    masks = [np.uint64((1 << count) - 1) for count in (bits - bits // 2, bits // 2)]
    left, right = numbers >> low_bits, numbers & masks[1]
    for number, key in enumerate(keys):
        # The halves swap each round, and so do their widths, which differ if `bits` is odd.
        left, right = right, left ^ (mix(right ^ key) & masks[number % 2])
    # After an even number of rounds each half has its first width again.
    return (left << low_bits) | right
