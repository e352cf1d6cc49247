"""A learned parameter of a stage: its shape, heads first, and its initial values."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from attnlab.errors import ParameterError


@dataclass(frozen=True)
class Dims:
    """The sizes that learned parameters depend on, and the place of the layer in a model, the first of 1 without one.

    model_dim: the width of the layer's input x; by default that of all heads together.
    num_key_heads: the heads of keys and values, if they are fewer than those of the queries.
    vocab_size: the number of token ids, for stages that request `tokens`.
    """

    num_heads: int
    head_dim: int
    value_dim: int
    layer: int = 0
    num_layers: int = 1
    model_dim: int = 0
    num_key_heads: int = 0
    vocab_size: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "model_dim", self.model_dim or self.num_heads * self.head_dim)
        object.__setattr__(self, "num_key_heads", self.num_key_heads or self.num_heads)


UNSET = math.nan
"""The upper bound of a Parameter without one."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A learned parameter: its shape, heads first, and its initial values: uniform from `low` to `high`, normal around
    0 with the standard deviation `std`, or `start`.

    start: a tensor of this shape, or a function of the indices of its axes, such as `lambda head, channel: …`, which
    gets one tensor of integers per axis and returns a tensor or a number. It must not be random: what is drawn from
    `low`, `high` or `std` follows the seed, the name of the layer and the name of the parameter.
    """

    shape: tuple[int, ...]
    low: float = 0.0
    high: float = UNSET
    has_weight_decay: bool = False
    per: Literal["head", "layer", "model"] = "head"
    """In a model: one value per head, one per layer, or one for all layers."""
    start: Tensor | Callable[..., Any] | None = None
    is_table: bool = False
    """Whether its rows are looked up by token ids, and not multiplied with the tokens."""
    std: float = 0.0

    def __post_init__(self) -> None:
        if self.high is UNSET:
            if isinstance(self.low, int | float) and self.low != 0:
                raise ParameterError(
                    f"a Parameter is drawn from low to high: give both low and high, such as {self.low}, {self.low} if "
                    "all values start there"
                )
            object.__setattr__(self, "high", 0.0)
        if not isinstance(self.shape, tuple) or not all(isinstance(n, int) and n > 0 for n in self.shape):
            raise ParameterError(
                "the shape of a Parameter is a tuple of positive integers, such as (dims.num_heads,), not "
                f"{self.shape!r}"
            )
        for name, bound in (("low", self.low), ("high", self.high), ("std", self.std)):
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                raise ParameterError(
                    f"{name} of a Parameter is a finite number, not {bound!r}; give a tensor or a function as start="
                )
        if self.low > self.high:
            raise ParameterError(f"a Parameter is drawn from low to high, and low = {self.low} is above {self.high}")
        if self.std < 0:
            raise ParameterError(f"std of a Parameter is a standard deviation, at least 0, not {self.std}")
        given = {"low and high": (self.low, self.high) != (0, 0), "std": self.std != 0, "start": self.start is not None}
        if sum(given.values()) > 1:
            names = ", or ".join(name for name, is_given in given.items() if is_given)
            number = {2: "two", 3: "three"}[sum(given.values())]
            raise ParameterError(f"a Parameter has {names}; give one of the {number}")
        if self.start is not None and not isinstance(self.start, Tensor) and not callable(self.start):
            raise ParameterError(
                f"start of a Parameter is a tensor or a function of the indices of its axes, not {self.start!r}; "
                "give a number as low and high"
            )

    def draw(self, name: str, generator: torch.Generator) -> Tensor:
        """Return the initial values in fp32; `name` stands in error messages. `start` does not use the generator."""
        if self.start is not None:
            return self._compute_start(name)
        if self.std:
            return self.std * torch.randn(self.shape, generator=generator, dtype=torch.float32, device="cpu")
        if self.low == self.high:
            return torch.full(self.shape, self.low, dtype=torch.float32, device="cpu")
        drawn = torch.rand(self.shape, generator=generator, dtype=torch.float32, device="cpu")
        return self.low + (self.high - self.low) * drawn

    def _compute_start(self, name: str) -> Tensor:
        value = self.start
        if not isinstance(value, Tensor):
            assert value is not None
            axes = [torch.arange(size, device="cpu") for size in self.shape]
            try:
                value = torch.as_tensor(value(*torch.meshgrid(*axes, indexing="ij")))
            except Exception as error:  # the function is the user's and may raise anything
                raise ParameterError(
                    f"start of parameter '{name}' is called with {len(self.shape)} tensors of integers, one per axis "
                    f"of {self.shape}, and raised {type(error).__name__}: {error}"
                ) from error
            value = value.expand(self.shape) if value.dim() == 0 else value
        if tuple(value.shape) != self.shape:
            raise ParameterError(f"start of parameter '{name}' must have shape {self.shape}, not {tuple(value.shape)}")
        value = value.detach().to("cpu", torch.float32, copy=True)
        if not bool(value.isfinite().all()):
            raise ParameterError(f"start of parameter '{name}' has values that are not finite")
        return value


def check_parameters(stage: str, declared: object, dims: Dims) -> Mapping[str, Parameter]:
    """Return what a stage's `parameters` declares, or raise an error that says what is wrong with it."""
    if not isinstance(declared, Mapping):
        raise ParameterError(
            f"`parameters` of stage '{stage}' must return a dict of Parameters by name, not {_describe(declared)}"
        )
    for name, parameter in declared.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ParameterError(f"stage '{stage}' declares a parameter {name!r}; its name must be a Python identifier")
        if not isinstance(parameter, Parameter):
            raise ParameterError(
                f"parameter '{name}' of stage '{stage}' is {_describe(parameter)}; declare "
                "attnlab.Parameter(shape, low, high), Parameter(shape, std=0.1) or Parameter(shape, "
                "start=tensor), and attnlab makes "
                f'the trainable tensor, which the call gets as p["{name}"]'
            )
        if parameter.shape[:1] not in ((dims.num_heads,), (dims.num_key_heads,)):
            raise ParameterError(
                f"parameter '{name}' of stage '{stage}' has shape {parameter.shape}; the first axis must be the heads, "
                f"here {dims.num_heads}: write (dims.num_heads, …), also for one value per layer or model (per=)"
            )
    return declared


def _describe(value: object) -> str:
    return f"a {'torch.nn.' * isinstance(value, torch.nn.Parameter)}{type(value).__name__}"
