"""The inputs of a construction, read as float64: keys, values, the scale of the scores and a tolerance.
Weights and outputs are computed by the kernels, never by formulas of the construction."""

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
"""Four keys of nearly equal norms: constructions that assume equal norms fail on them."""


@dataclass(frozen=True, eq=False)
class ConstructionProblem:
    """Keys [n d], values [n e], the scale of q·k, and the error that is accepted.

    Without values the output is the weights, as if the values were unit vectors.
    """

    keys: Tensor
    values: Tensor | None
    scale: float
    tolerance: float

    @property
    def num_keys(self) -> int:
        """The number of keys."""
        return self.keys.shape[0]

    def scores(self, query: Tensor) -> Tensor:
        """Return scale · q·k for one query [d], or for each of several [q d]."""
        return (query * self.scale) @ self.keys.mT

    def weights(self, query: Tensor, mechanism: str = SOFTMAX) -> Tensor:
        """Return the weights that one query [d] gives the keys, or each of several [q d]."""
        weights = kernels.weights(query.reshape(-1, query.shape[-1]), self.keys, mechanism, scale=self.scale)
        return weights.reshape(*query.shape[:-1], self.num_keys)

    def output(self, query: Tensor, mechanism: str = SOFTMAX) -> Tensor:
        """Return the output of attention for one query [d], or for each of several [q d]."""
        if self.values is None:
            return self.weights(query, mechanism)
        rows = query.reshape(-1, query.shape[-1])
        output = kernels.attend(rows, self.keys, self.values, mechanism, scale=self.scale)
        return output.reshape(*query.shape[:-1], self.values.shape[1])


def read_problem(
    keys: Numbers, values: Numbers | None = None, scale: float | None = None, tolerance: float = TOLERANCE
) -> ConstructionProblem:
    """Check the inputs of a construction, and fill in the defaults.

    scale: factor of q·k, 1/√d by default. tolerance: the share of the weight that may lie elsewhere.
    """
    matrix = _read_matrix("keys", keys)
    mixed = read_values(values, matrix.shape[0])
    factor = 1 / math.sqrt(matrix.shape[1]) if scale is None else read_positive("scale", scale)
    if not is_number(tolerance) or not 0 < tolerance < 0.5:
        raise RequestError(
            f"tolerance must be above 0 and below 0.5, not {tolerance!r}; "
            "from a half on, another key may weigh as much as the one that was asked for"
        )
    return ConstructionProblem(matrix, mixed, factor, float(tolerance))


def read_values(values: Numbers | None, num_keys: int) -> Tensor | None:
    """Return one row for each key; None stays None."""
    if values is None:
        return None
    matrix = _read_matrix("values", values)
    if matrix.shape[0] != num_keys:
        raise ShapeError(f"values must have one row for each of {num_keys} keys; they have {matrix.shape[0]}")
    return matrix


def _read_matrix(name: str, given: Numbers) -> Tensor:
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
    """Return finite real numbers of any shape as a new float64 tensor."""
    if isinstance(given, Tensor):
        if given.is_complex() or given.dtype == torch.bool:
            raise RequestError(f"{name} must hold real numbers, not {given.dtype}")
        given = given.detach().cpu().double().numpy()
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ShapeError(f"{name} must be numbers in rows of one length ({error})") from error
    if not np.isfinite(array).all():
        raise RequestError(f"{name} must be finite; there is a NaN, an infinity or a gap among them")
    return torch.from_numpy(array)


def read_positive(name: str, number: float) -> float:
    """Return a number above 0 as a float."""
    if not is_number(number) or not 0 < number < math.inf:
        raise RequestError(f"{name} must be a number above 0, not {number!r}")
    return float(number)


def read_integer(given: Any) -> int | None:
    """Return an integer of Python or numpy; None for anything else, including bool."""
    try:
        return None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return None


def read_index(index: Any, num_keys: int) -> int:
    """Return the number of a key, counted from 0."""
    number = read_integer(index)
    if number is None:
        raise RequestError(f"a key is named by its number, counted from 0, not by {index!r}")
    if not 0 <= number < num_keys:
        last = f"there are keys 0 to {num_keys - 1}" if num_keys > 1 else "there is only key 0"
        raise RequestError(f"there is no key {number}; {last}")
    return number


def read_subset(subset: Any, num_keys: int) -> tuple[int, ...]:
    """Return the sorted numbers of some keys; all of them for None."""
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
    """Tell whether a value is a number; bool, text and tensors are not."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
