"""A stage: one named component of a mechanism, as a frozen dataclass whose fields are its arguments.

`@stage("name")` registers a class under the name that a line uses, after `declaration.py` checked it. A keyword-only
parameter of its `__call__` requests an input beside the tensors: without a default it is required, with the default
None it is optional.
"""

import dataclasses
import operator
import re
from abc import ABCMeta
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar

import torch
from torch import Tensor

from attnlab.errors import MechanismError, ShapeError, closest

from .arguments import argument_types, describe, fits, is_number, write
from .declaration import (
    check_class,
    check_fields,
    check_methods,
    explain_assignment,
    find_interface,
    read_needs,
    refuse_trained,
)
from .parameter import Dims, Parameter

Slot = Literal[
    "share", "kv_heads", "features", "positions", "score", "cap", "forget", "causal", "mask", "weights", "heads",
    "values", "delta", "drop", "output", "mixer",
]  # fmt: skip
SLOTS: tuple[Slot, ...] = (
    "score",
    "cap",
    "weights",
    "forget",
    "causal",
    "mask",
    "features",
    "heads",
    "values",
    "delta",
    "drop",
    "output",
    "positions",
    "share",
    "kv_heads",
    "mixer",
)
"""The slots of a mechanism, in the order in which a line is written."""

Params = Mapping[str, Tensor]
"""A stage's learned parameters, by the names its `parameters` declares."""


@dataclass(frozen=True, eq=False)
class Positions:
    """The positions of queries and keys in their sequences: integers, [b|1 1 q] and [b|1 1 k].

    A kernel may pass a block of queries, and the keys up to the last one that these can see. The positions of padding
    and of empty cache slots are arbitrary; no query sees them.
    """

    queries: Tensor
    keys: Tensor

    @property
    def distances(self) -> Tensor:
        """The position of the query minus that of the key, [b|1 1 q k]: positive for earlier keys."""
        return self.queries[..., :, None] - self.keys[..., None, :]

    def rows(self, start: int, stop: int, horizon: int) -> Self:
        """Return the positions of queries start…stop and of the first `horizon` keys."""
        return type(self)(self.queries[..., start:stop], self.keys[..., :horizon])


@dataclass(frozen=True, eq=False)
class LayerInput:
    """The layer's input x at the tokens of the queries and of the keys, [b q m] and [b k m]."""

    queries: Tensor
    keys: Tensor

    def rows(self, start: int, stop: int, horizon: int) -> Self:
        """Return the input at queries start…stop and at the first `horizon` keys."""
        return type(self)(self.queries[:, start:stop], self.keys[:, :horizon])


class StageError(MechanismError):
    """An invalid value of a stage argument; `argument` is its name."""

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(message)
        self.argument = argument


def name_argument(field_name: str) -> str:
    """Return the name of a field in a line: `from_` is written `from`, which is a word of Python."""
    return field_name.rstrip("_")


Shown = Literal["changed", "keyword", "positional"]
Bound = float | None
BOUNDS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "at_least": ("at least", operator.ge), "above": ("above", operator.gt), "at_most": ("at most", operator.le),
    "below": ("below", operator.lt),
}  # fmt: skip
"""The bounds of a number: how a message says each, and when it holds."""


def argument(
    default: Any = dataclasses.MISSING, *, shown: Shown = "changed", at_least: Bound = None, above: Bound = None,
    at_most: Bound = None, below: Bound = None, **unknown: object,
) -> Any:  # fmt: skip
    """Declare a stage's argument: its bounds, and whether a line shows it even if it is the default, if it has one."""
    bounds = dict(zip(BOUNDS, (at_least, above, at_most, below), strict=True))
    for word in unknown:
        raise MechanismError(
            f"argument(…) takes no '{word}'{closest(word, bounds) or '.'} It takes a default, the bounds "
            f"{', '.join(bounds)}, and shown"
        )
    return field(default=default, metadata={"shown": shown, **bounds})


class StageType(ABCMeta):
    """The type of stage classes: refuses a dataclass that is not frozen, and attributes that are no arguments, before
    Python does in its own words."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        """Make a stage."""
        try:
            made = super().__call__(*args, **options)
        except dataclasses.FrozenInstanceError as error:
            raise MechanismError(explain_assignment(cls, error)) from error
        for attribute, value in vars(made).items():
            refuse_trained(cls, attribute, value)
        return made

    def __setattr__(cls, name: str, value: Any) -> None:
        # `dataclass` stores its options first of all.
        if name == "__dataclass_params__" and not value.frozen:
            raise MechanismError(
                f"{cls.__name__} is a dataclass that can be changed, and a stage has no state: write "
                "@dataclass(frozen=True) above the class, and @stage above that"
            )
        super().__setattr__(name, value)


@dataclass(frozen=True)
class Stage(metaclass=StageType):
    """One component of a mechanism. A stage has no state beyond its fields.

    needs: the inputs that `__call__` requests besides its tensors, and whether each is required; set by `@stage`.
    traits: the attributes that tell kernels and models what they may assume about the call.
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
                # 1 and 1.0 are the same value, so they must be written the same.
                object.__setattr__(self, item.name, float(value))
            _check_bounds(self.name, item, value)

    def __init_subclass__(cls) -> None:
        check_class(cls)

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
    def replaces(self) -> Mapping[str, str | None]:
        """What a model may have of its own that the stage takes the place of, by the names of `install.own_parts`, each
        with the learned parameter that starts at the model's values; None if nothing does."""
        return {}

    @property
    def inputs(self) -> Mapping[str, bool]:
        """The inputs that the call requests with these arguments, and whether each is required: `needs`, or fewer."""
        return self.needs

    @property
    def origin(self) -> str:
        """The name of the Python module that defines the stage."""
        return type(self).__module__

    @property
    def is_scheduled(self) -> bool:
        """Whether the stage changes during training."""
        cls = type(self)
        return cls.at is not Stage.at or cls.parameters_at is not Stage.parameters_at

    @property
    def notes(self) -> tuple[str, ...]:
        """What a caller of `attend` should know: optional inputs of the stage, and what acts only in a model."""
        return ()

    @property
    def advice(self) -> str:
        """What to declare for a faster kernel, or an empty string."""
        return ""

    def __str__(self) -> str:
        shown, may_be_unnamed = [], True
        for item in dataclasses.fields(self):
            value, how = getattr(self, item.name), item.metadata.get("shown", "changed")
            # A value without a name is read by its position, so every field before it must be unnamed too.
            may_be_unnamed = may_be_unnamed and how == "positional"
            if how != "changed" or value != item.default:
                shown.append(write(value) if may_be_unnamed else f"{name_argument(item.name)}={write(value)}")
        return f"{self.name}({', '.join(shown)})" if shown else self.name


AXES: Mapping[str, str] = {
    "score": "[batch, heads, queries, keys]",
    "weights": "[batch, heads, queries, keys]",
    "values": "[batch, heads, length, head_dim]",
    "output": "[batch, heads, queries, head_dim]",
    "features": "[batch, heads, length, channels]",
    "forget": "[batch, heads, length, channels]",
    "heads": "[batch, heads, length, channels]",
    "positions": "[batch, heads, length, head_dim]",
}
"""What the call of a stage returns, by its slot."""


def check_result(stage: Stage, result: object, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> None:
    """Refuse a result of a stage's call that is not a tensor of floats of this shape, or of another dtype."""
    needed = f"'{stage}' must return {AXES[stage.slot]} = {tuple(shape)}"
    if not isinstance(result, Tensor):
        raise ShapeError(f"{needed}, not {'None: its call has no return' if result is None else type(result).__name__}")
    if tuple(result.shape) != tuple(shape):
        raise ShapeError(f"{needed}, not {tuple(result.shape)}")
    if not result.is_floating_point():
        raise ShapeError(f"{needed} in floating point, not {result.dtype}; return tensor.to(its input's dtype)")
    if dtype is not None and result.dtype != dtype:
        raise ShapeError(f"{needed} in {dtype}, as its input, not {result.dtype}; return tensor.to({dtype})")


REGISTRY: dict[str, type[Stage]] = {}
"""Every stage by its name in a line."""

NAMED: dict[str, str] = {}
"""Catalog names and their lines, filled by the catalog."""

S = TypeVar("S", bound=type[Stage])


def stage(name: str) -> Callable[[S], S]:
    """Register a frozen dataclass as a stage under this name; it then works wherever a built-in one does."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise MechanismError(f'@stage("name") needs a name of lower case letters, digits and _, not {name!r}')

    def register(cls: S) -> S:
        if not (isinstance(cls, type) and issubclass(cls, Stage) and hasattr(cls, "slot")):
            raise MechanismError(
                f"stage '{name}' must derive from Score, Weights, Mask, Value or another slot, not {cls!r}"
            )
        if "__dataclass_params__" not in vars(cls) or not vars(cls)["__dataclass_params__"].frozen:
            raise MechanismError(f"stage '{name}' must be a frozen dataclass: put @dataclass(frozen=True) below @stage")
        _check_name(name, cls)
        check_fields(name, cls)
        check_methods(name, cls)
        _reset_traits(cls)
        cls.needs = read_needs(name, cls)
        cls.name = name
        REGISTRY[name] = cls
        return cls

    return register


def find_undecorated_stage(name: str) -> type[Stage] | None:
    """Return a class without @stage whose own name is like this one: `my_score` for MyScore."""
    classes = list(Stage.__subclasses__())
    for cls in classes:
        classes += cls.__subclasses__()
        if "name" not in vars(cls) and cls.__name__.lower() == name.replace("_", "").lower():
            return cls
    return None


def _check_name(name: str, cls: type[Stage]) -> None:
    """Reject a name that is taken; the same class defined again (a notebook cell) replaces itself."""
    known = REGISTRY.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        taken = f"{known.__module__}.{known.__qualname__}"
        raise MechanismError(f"a stage named '{name}' exists already: {taken}; choose another name")
    if known is None and name in NAMED:
        raise MechanismError(f"'{name}' is the name of a catalog entry: {NAMED[name]}; choose another name")


def _reset_traits(cls: type[Stage]) -> None:
    """Reset inherited traits of a class that defines its own call: they describe the call of its base class."""
    if "__call__" in vars(cls):
        interface = find_interface(cls)
        for trait in cls.traits:
            if trait not in vars(cls):
                setattr(cls, trait, vars(interface)[trait])


def _check_bounds(name: str, item: dataclasses.Field[Any], value: object) -> None:
    if not is_number(value):
        return
    for bound, (words, holds) in BOUNDS.items():
        limit = item.metadata.get(bound)
        if limit is not None and not holds(value, limit):
            raise StageError(item.name, f"{name}: {item.name} must be {words} {write(limit)}, not {write(value)}")
