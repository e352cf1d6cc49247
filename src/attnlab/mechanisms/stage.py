"""A stage: one named choice of a mechanism, as a frozen dataclass whose fields are its arguments.

`@stage("name")` registers a class under the name that a line uses; `arguments` says what its fields may be.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar

from torch import Tensor

from attnlab.errors import MechanismError

from .arguments import argument_types, describe, fits, is_number, write
from .needs import read_needs

Slot = Literal["share", "score", "mask", "weights", "values", "drop", "output"]
SLOTS: tuple[Slot, ...] = ("score", "weights", "mask", "values", "drop", "output", "share")
"""The slots of a mechanism, in the order in which a line is written."""

Params = Mapping[str, Tensor]
"""A stage's learned parameters, by the names its `parameters` declares."""


@dataclass(frozen=True)
class Dims:
    """The sizes that learned parameters depend on."""

    num_heads: int
    head_dim: int
    value_dim: int


@dataclass(frozen=True)
class Parameter:
    """A learned parameter: its shape, led by the heads, and the uniform range it starts in."""

    shape: tuple[int, ...]
    low: float
    high: float
    decays: bool = False
    per: Literal["head", "layer", "model"] = "head"
    """In a model: one value per head, one per layer, or one for all layers."""


class StageError(MechanismError):
    """A stage argument with a value it cannot have; `argument` names it."""

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(message)
        self.argument = argument


def argument(
    default: Any,
    *,
    shown: Literal["changed", "keyword", "positional"] = "changed",
    at_least: float | None = None,
    below: float | None = None,
) -> Any:
    """Declare a stage's argument: its bounds, and whether a line shows it even where it is the default."""
    metadata = {"shown": shown, "at_least": at_least, "below": below}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Stage(ABC):
    """One choice of a mechanism. A leaf sets no state beyond its fields.

    `needs` says what its call asks for beside its tensors, and whether it requires it; `@stage` reads it off the call.
    `traits` names the attributes that tell kernels and models what they may assume about the call.
    """

    name: ClassVar[str] = ""
    slot: ClassVar[Slot]
    needs: ClassVar[Mapping[str, bool]] = {}
    traits: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        hints = argument_types(type(self))
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if not fits(value, hints[item.name]):
                wanted = describe(hints[item.name])
                raise StageError(item.name, f"{self.name}: {item.name} must be {wanted}, not {value!r}")
            if is_number(value) and float in hints[item.name] and int not in hints[item.name]:
                # 1 and 1.0 are one value, so they are one line too.
                object.__setattr__(self, item.name, float(value))
            _check_bounds(self.name, item, value)

    def parameters(self, dims: Dims) -> dict[str, Parameter]:
        """Declare the learned parameters."""
        return {}

    def at(self, progress: float) -> Self:
        """Return the stage as it is at a point of training, from 0 to 1; a stage without a schedule is constant."""
        return self

    def parameters_at(self, p: Params, progress: float) -> Params:
        """Return the learned parameters as the schedule scales them at a point of training."""
        return p

    @property
    def is_scheduled(self) -> bool:
        """Whether the stage changes during training."""
        cls = type(self)
        return cls.at is not Stage.at or cls.parameters_at is not Stage.parameters_at

    @property
    def notes(self) -> tuple[str, ...]:
        """What a caller of `attend` should know: inputs the stage takes, and what acts only elsewhere."""
        return ()

    def __str__(self) -> str:
        shown, may_be_unnamed = [], True
        for item in dataclasses.fields(self):
            value, how = getattr(self, item.name), item.metadata.get("shown", "changed")
            # A value without its name is read by its position, so every field before it must be unnamed too.
            may_be_unnamed = may_be_unnamed and how == "positional"
            if how != "changed" or value != item.default:
                shown.append(write(value) if may_be_unnamed else f"{item.name}={write(value)}")
        return f"{self.name}({', '.join(shown)})" if shown else self.name


REGISTRY: dict[str, type[Stage]] = {}
"""Every stage by the name a line calls it."""

NAMED: dict[str, str] = {}
"""Catalog names and their lines, filled by the catalog."""

RESERVED = ("name", "slot", "needs", "traits", "at", "parameters", "parameters_at", "is_scheduled", "notes")
"""Attributes of every stage, which an argument of a line cannot be called."""

S = TypeVar("S", bound=type[Stage])


def stage(name: str) -> Callable[[S], S]:
    """Register a frozen dataclass as the stage of this name; it then works wherever a built-in one does."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise MechanismError(f'@stage("name") needs a name of lower case letters, digits and _, not {name!r}')

    def register(cls: S) -> S:
        if not (isinstance(cls, type) and issubclass(cls, Stage) and hasattr(cls, "slot")):
            raise MechanismError(f"stage '{name}' must derive from Score, Weights, Value or another slot")
        if "__dataclass_params__" not in vars(cls) or not vars(cls)["__dataclass_params__"].frozen:
            raise MechanismError(f"stage '{name}' must be a dataclass(frozen=True), below @stage")
        _check_name(name, cls)
        _check_fields(name, cls)
        _reset_traits(cls)
        cls.needs = read_needs(name, cls.slot, cls)
        cls.name = name
        REGISTRY[name] = cls
        return cls

    return register


def _check_name(name: str, cls: type[Stage]) -> None:
    """Refuse a name that is taken; the same class defined once more (a notebook's cell) replaces itself."""
    known = REGISTRY.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        owner = f"{known.__module__}.{known.__qualname__}"
        raise MechanismError(f"a stage named '{name}' exists already: {owner}")
    if known is None and name in NAMED:
        raise MechanismError(f"'{name}' is the name of a catalog entry: {NAMED[name]}")


def _check_fields(name: str, cls: type[Stage]) -> None:
    """Refuse a class that no line could write, or that nothing could call."""
    for item in dataclasses.fields(cls):
        if item.name in (*RESERVED, *cls.traits) or not item.init:
            raise MechanismError(f"stage '{name}' cannot have '{item.name}' as an argument of a line")
    argument_types(cls)
    if inspect.isabstract(cls):
        raise MechanismError(f"stage '{name}' must define {', '.join(sorted(cls.__abstractmethods__))}")


def _reset_traits(cls: type[Stage]) -> None:
    """Drop the traits that a class with its own call inherits: they describe the call of its base class."""
    if "__call__" in vars(cls):
        interface = next(base for base in cls.__mro__ if "slot" in vars(base))
        for trait in cls.traits:
            if trait not in vars(cls):
                setattr(cls, trait, vars(interface)[trait])


def _check_bounds(name: str, item: dataclasses.Field[Any], value: object) -> None:
    """Refuse a number outside the bounds its field declares."""
    if not is_number(value):
        return
    low, high = item.metadata.get("at_least"), item.metadata.get("below")
    if low is not None and value < low:
        raise StageError(item.name, f"{name}: {item.name} must be at least {write(low)}, not {write(value)}")
    if high is not None and value >= high:
        raise StageError(item.name, f"{name}: {item.name} must be below {write(high)}, not {write(value)}")
