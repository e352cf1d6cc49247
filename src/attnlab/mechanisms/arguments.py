"""The values that arguments of stages may have, and how a line writes them. The annotation of a stage's field defines
its values: `float`, `int`, `bool`, `Literal[...]`, `Layers`, or a union of these."""

import dataclasses
import functools
import math
import re
import types
import typing
from typing import Any, Literal, NewType, TypeGuard

import torch

from attnlab.errors import MechanismError, closest

Layers = NewType("Layers", str)
"""Which layers a stage acts in: `all`, `0-3` or `0,2`."""

MixerName = NewType("MixerName", str)
"""The name of a registered mixer."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
LAYER = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?")
LAYERS = re.compile(rf"all|{LAYER.pattern}(,{LAYER.pattern})*")

WORD = re.compile(r"(?!(true|false|none)$)[A-Za-z_][A-Za-z0-9_]*")
"""A literal that cannot be mistaken for a number, true, false or none."""


@functools.cache
def argument_types(cls: type[Any]) -> dict[str, tuple[Any, ...]]:
    """Return each argument's alternatives: types, `Layers`, and the literal values themselves."""
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise MechanismError(f"an annotation of {cls.__name__} cannot be read: {error}") from error
    return {item.name: _alternatives(cls, item.name, hints[item.name]) for item in dataclasses.fields(cls)}


def _alternatives(cls: type[Any], name: str, hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(a for part in typing.get_args(hint) for a in _alternatives(cls, name, part))
    if typing.get_origin(hint) is Literal:
        for value in typing.get_args(hint):
            if not (isinstance(value, int) or (isinstance(value, str) and WORD.fullmatch(value))):
                raise MechanismError(f"argument '{name}' of {cls.__name__}: a line cannot write {value!r}")
        return typing.get_args(hint)
    if hint in (float, int, bool, Layers, MixerName, types.NoneType):
        return (hint,)
    is_tensor = isinstance(hint, type) and issubclass(hint, torch.Tensor | torch.nn.Module)
    learned = "; learned tensors are declared in `parameters`" if is_tensor else ""
    raise MechanismError(
        f"argument '{name}' of {cls.__name__} is annotated {hint}; a stage's arguments are "
        f"float, int, bool, Literal[...], Layers, or a union of these{learned}"
    )


def fits(value: object, admitted: tuple[Any, ...]) -> bool:
    """Tell whether a value is one of the alternatives."""
    if is_number(value) and float in admitted:
        return _is_finite(value)
    if isinstance(value, str) and Layers in admitted and are_layers(value):
        return True
    if isinstance(value, str) and MixerName in admitted and NAME.fullmatch(value):
        return True
    # By type first: True is not the literal 1, and 1 is not a bool.
    is_literal = isinstance(value, str | int) and any(type(o) is type(value) and o == value for o in admitted)
    return is_literal or type(value) in admitted


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(number: int | float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer beyond the range of floats
        return False


def are_layers(text: str) -> bool:
    """Tell whether a text lists layers; ranges must be ascending."""
    if not LAYERS.fullmatch(text):
        return False
    ends = [part.split("-") for part in text.split(",") if "-" in part]
    return all(int(first) <= int(last) for first, last in ends)


def describe(admitted: tuple[Any, ...]) -> str:
    """Describe the values that an argument may have."""
    words = {float: "a number", int: "a whole number", bool: "true or false", Layers: "layers like all, 0-3 or 0,2"}
    words[MixerName] = "the name of a mixer"
    named = [words.get(o, write(o)) for o in admitted if o is not types.NoneType]
    return " or ".join(named) if len(named) <= 2 else ", ".join(named[:-1]) + f" or {named[-1]}"


def write(value: object) -> str:
    """Write an argument's value as a line does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def read(text: str, admitted: tuple[Any, ...]) -> object:
    """Read an argument's value as a line writes it; raise ValueError if it is not one of the alternatives."""
    for option in admitted:
        if isinstance(option, str | int) and not isinstance(option, type) and text == write(option):
            return option
    if bool in admitted and text in ("true", "false"):
        return text == "true"
    if types.NoneType in admitted and text == "none":
        return None
    if Layers in admitted and are_layers(text):
        return text
    if MixerName in admitted and NAME.fullmatch(text):
        return text
    for kind in (int, float):
        if kind in admitted:
            try:
                number = kind(text)
            except ValueError:
                continue
            if kind is int or math.isfinite(number):
                return number
    names = [o for o in admitted if isinstance(o, str)]
    raise ValueError(f"must be {describe(admitted)}, not '{text}'" + closest(text, names))
