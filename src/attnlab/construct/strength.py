"""The strength S at which q = S·(k_a + k_b) averages two of n orthonormal keys:

    α = 1/(2 + (n−2)·e^(−S/√h)),  so  S = √h · ln((n−2)α/(1−2α)).

It is enough that k_a and k_b are orthonormal and orthogonal to all others, so there may be more keys than dimensions.
"""

import math
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from attnlab.charts import Spec
from attnlab.errors import RequestError
from attnlab.notebook import Facts

from . import pictures
from .construction import Construction
from .focus import compute_error, make_target
from .problem import TOLERANCE, ConstructionProblem, is_number, read_integer
from .words import short

MAX_NUMBERS = 10**7
"""The largest number of key coordinates for which weights are computed."""


class Strength(Construction, float):
    """The strength S as a float, with the weights of n keys of which the first two are averaged."""

    num_keys: int
    head_dim: int
    weight: float
    """α, the weight of each of the two keys."""

    def __new__(cls, value: float, num_keys: int, head_dim: int, weight: float) -> Self:
        """Create the number with its attributes."""
        number = super().__new__(cls, value)
        number.num_keys, number.head_dim, number.weight = num_keys, head_dim, weight
        return number

    def __reduce__(self) -> tuple[type[Self], tuple[float, int, int, float]]:
        return type(self), (float(self), self.num_keys, self.head_dim, self.weight)

    @cached_property
    def problem(self) -> ConstructionProblem:
        """The keys: unit vectors, the first two unlike all others; the rest repeat if there are too few dimensions."""
        if self.num_keys * self.head_dim > MAX_NUMBERS:
            raise RequestError(
                f"{self.num_keys} keys of head_dim {self.head_dim} are too many numbers to lay out; the strength and "
                "its weight are there without them"
            )
        others = [2 + number % max(self.head_dim - 2, 1) for number in range(self.num_keys - 2)]
        keys = torch.zeros(self.num_keys, self.head_dim, dtype=torch.float64)
        keys[range(self.num_keys), [0, 1, *others]] = 1.0
        return ConstructionProblem(keys, None, 1 / math.sqrt(self.head_dim), TOLERANCE)

    @property
    def query(self) -> Tensor:
        """S·(k_a + k_b)."""
        return float(self) * (self.problem.keys[0] + self.problem.keys[1])

    @cached_property
    def weights(self) -> Tensor:
        """The kernel's weights of the query."""
        return self.problem.weights(self.query)

    @property
    def output(self) -> Tensor:
        """The weights, since the values are unit vectors."""
        return self.weights

    @property
    def error(self) -> float:
        """The share of misplaced weight, 1 − 2α for α ≤ ½."""
        return compute_error(self.weights, make_target(self.problem, (0, 1)))

    @property
    def alone(self) -> float:
        """The weight of each of the two keys at S = 1, for q = k_a + k_b."""
        return 1 / (2 + (self.num_keys - 2) * math.exp(-1 / math.sqrt(self.head_dim)))

    def figure(self) -> Spec:
        """Draw the weights at S = 1 and at S, and how they grow between."""
        return pictures.draw_strength(self)

    __repr__ = float.__repr__

    def facts(self) -> Facts:
        """Return the sentence alone: the keys of a large problem are never laid out."""
        return Facts("", str(self))

    def picture(self) -> str:
        """Return the figure as an SVG; an empty string if there are too many keys to draw."""
        return super().picture() if self.num_keys * self.head_dim <= MAX_NUMBERS else ""

    def __str__(self) -> str:
        if self.num_keys == 2:
            return "Two keys that score alike have weight ½ each at every strength."
        crowded = (
            f" {self.num_keys} keys cannot all be orthogonal in {self.head_dim} dimensions: the others are orthogonal "
            "to k_a and k_b alone, which is all that matters."
            if self.num_keys > self.head_dim
            else ""
        )
        return (
            f"S = {float(self):.4g} gives k_a and k_b weight {short(self.weight)} each among {self.num_keys} keys of "
            f"head_dim {self.head_dim}; q = k_a + k_b alone gives {short(self.alone)}, and ½ comes only in the limit."
            f"{crowded}"
        )


def strength(n: int, head_dim: int, weight: float) -> Strength:
    """Return the S for which q = S·(k_a + k_b) gives each of the two keys a weight, among n orthonormal keys.

    The result is a number. It is negative for a weight below 1/n.
    """
    n, head_dim = _read_count("n", n), _read_count("head_dim", head_dim)
    if not is_number(weight):
        raise RequestError(f"weight must be a number between 0 and 0.5, not {weight!r}")
    if n == 2:
        if weight != 0.5:
            raise RequestError(f"two keys that score alike have weight 0.5 each at every strength, never {weight!r}")
        return Strength(0.0, n, head_dim, 0.5)
    if head_dim == 2:
        raise RequestError(f"{n} keys of which two are orthogonal to all others need a head_dim of 3 or more, not 2")
    if not 0 < weight < 0.5:
        limit = "; two keys share the weight, and half each is reached only in the limit S → ∞" if weight >= 0.5 else ""
        raise RequestError(f"weight must be above 0 and below 0.5, not {weight!r}{limit}")
    value = math.sqrt(head_dim) * (math.log(n - 2) + math.log(weight) - math.log1p(-2 * weight))
    return Strength(value, n, head_dim, float(weight))


def _read_count(name: str, given: Any) -> int:
    count = read_integer(given)
    if count is None or count < 2:
        raise RequestError(f"{name} must be a whole number from 2 on, not {given!r}")
    return count
