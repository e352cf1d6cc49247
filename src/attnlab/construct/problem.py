"""What a construction is given: keys, values, the scale of the scores and a tolerance, read from tensors, arrays or
lists and held in float64. Weights and outputs come from the kernels, never from a formula of the construction's own."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from attnlab import kernels
from attnlab.errors import RequestError, ShapeError

Numbers: TypeAlias = Any
"""A tensor, an array or nested lists of numbers."""

SOFTMAX, ARGMAX = "dot | softmax", "dot | argmax"
TOLERANCE = 0.01
EXAMPLE_KEYS = ((0.47, 0.65, 0.60), (0.64, 0.50, -0.59), (-0.03, -0.48, -0.88), (0.43, -0.83, 0.35))
"""Four keys of almost, but not quite, one length: what works on paper for equal lengths fails on them."""


@dataclass(frozen=True, eq=False)
class ConstructionProblem:
    """What a query meets: keys [n d], values [n e], the scale of q·k, and the error that is small enough.

    Without values the output is the weights themselves, as if each key's value were its own unit vector.
    """

    keys: Tensor
    values: Tensor | None
    scale: float
    tolerance: float

    @property
    def num_keys(self) -> int:
        """How many keys there are."""
        return self.keys.shape[0]

    def scores(self, query: Tensor) -> Tensor:
        """Return scale · q·k for one query [d], or for each of several [q d]."""
        return (query * self.scale) @ self.keys.mT

    def weights(self, query: Tensor, mechanism: str = SOFTMAX) -> Tensor:
        """Return the weights that one query [d] gives the keys, or each of several [q d]."""
        found = kernels.weights(query.reshape(-1, query.shape[-1]), self.keys, mechanism, scale=self.scale)
        return found.reshape(*query.shape[:-1], self.num_keys)

    def output(self, query: Tensor, mechanism: str = SOFTMAX) -> Tensor:
        """Return what attention gives for one query [d], or for each of several [q d]."""
        if self.values is None:
            return self.weights(query, mechanism)
        rows = query.reshape(-1, query.shape[-1])
        found = kernels.attend(rows, self.keys, self.values, mechanism, scale=self.scale)
        return found.reshape(*query.shape[:-1], self.values.shape[1])


def read_problem(
    keys: Numbers, values: Numbers | None = None, scale: float | None = None, tolerance: float = TOLERANCE
) -> ConstructionProblem:
    """Check what a construction is given, and fill in the defaults."""
    matrix = read_matrix("keys", keys)
    given = read_values(values, matrix.shape[0])
    return ConstructionProblem(matrix, given, read_scale(scale, matrix.shape[1]), read_tolerance(tolerance))


def read_values(values: Numbers | None, num_keys: int) -> Tensor | None:
    """Return one row for each key; None stays None."""
    if values is None:
        return None
    matrix = read_matrix("values", values)
    if matrix.shape[0] != num_keys:
        raise ShapeError(f"values must have one row for each of {num_keys} keys; they have {matrix.shape[0]}")
    return matrix


def read_matrix(name: str, given: Numbers) -> Tensor:
    """Return rows of finite numbers as a float64 tensor."""
    matrix = read_numbers(name, given)
    if matrix.dim() != 2:
        raise ShapeError(f"{name} must be a matrix, one row each: [n, d]; the shape is {tuple(matrix.shape)}")
    if 0 in matrix.shape:
        raise ShapeError(f"{name} must not be empty; the shape is {tuple(matrix.shape)}")
    return matrix


def read_vector(name: str, given: Numbers, width: int) -> Tensor:
    """Return one row of finite numbers as a float64 tensor."""
    vector = read_numbers(name, given)
    if tuple(vector.shape) != (width,):
        raise ShapeError(f"{name} must be {width} numbers, as wide as the keys; the shape is {tuple(vector.shape)}")
    return vector


def read_numbers(name: str, given: Numbers) -> Tensor:
    """Return finite real numbers of any shape as a float64 tensor of its own."""
    if isinstance(given, Tensor):
        if given.is_complex() or given.dtype == torch.bool:
            raise RequestError(f"{name} must hold real numbers, not {given.dtype}")
        given = given.detach().cpu().double().numpy()
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ShapeError(f"{name} must be numbers in rows of one length ({error})") from error
    if not np.isfinite(array).all():
        raise RequestError(f"{name} must be finite; there is a NaN, an infinity or a gap among them")
    return torch.from_numpy(array)


def read_scale(scale: float | None, head_dim: int) -> float:
    """Return what q·k is multiplied with: 1/√d unless said, as the dot score has it."""
    if scale is None:
        return 1 / math.sqrt(head_dim)
    if not is_number(scale) or not 0 < scale < math.inf:
        raise RequestError(f"scale must be a number above 0, not {scale!r}")
    return float(scale)


def read_tolerance(tolerance: float) -> float:
    """Return the share of the weight that may lie elsewhere."""
    if not is_number(tolerance) or not 0 < tolerance < 0.5:
        raise RequestError(
            f"tolerance must be above 0 and below 0.5, not {tolerance!r}; "
            "from a half on, another key may weigh as much as the one that was asked for"
        )
    return float(tolerance)


def read_index(index: Any, num_keys: int) -> int:
    """Return the number of a key, counted from 0."""
    try:
        number = None if isinstance(index, bool) else operator.index(index)
    except TypeError:
        number = None
    if number is None:
        raise RequestError(f"a key is named by its number, counted from 0, not by {index!r}")
    if not 0 <= number < num_keys:
        last = f"there are keys 0 to {num_keys - 1}" if num_keys > 1 else "there is only key 0"
        raise RequestError(f"there is no key {number}; {last}")
    return number


def read_subset(subset: Any, num_keys: int) -> tuple[int, ...]:
    """Return the numbers of some keys in order; all of them for None."""
    if subset is None:
        return tuple(range(num_keys))
    if isinstance(subset, Tensor | np.ndarray):
        subset = subset.tolist()
    if isinstance(subset, str) or not isinstance(subset, Sequence | set | frozenset | range):
        raise RequestError(f"subset must be a list of key numbers such as [0, 1], not {subset!r}")
    numbers = sorted(read_index(index, num_keys) for index in subset)
    if not numbers:
        raise RequestError("subset must name at least one key; leave it out to average all")
    twice = next((number for number, after in pairwise(numbers) if number == after), None)
    if twice is not None:
        raise RequestError(f"subset names key {twice} twice; name each key once")
    return tuple(numbers)


def is_number(value: object) -> bool:
    """Tell a number from a bool, a text or a tensor."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
