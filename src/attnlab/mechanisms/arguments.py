"""What an argument of a stage may be, and how a line writes it. The annotations of a stage's fields are the
grammar: `float`, `int`, `bool`, `Literal[...]`, `Layers`, or a union of them."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
import typing
from typing import Any, Literal, NewType, TypeGuard

from attnlab.errors import MechanismError, closest

Layers = NewType("Layers", str)
"""Which layers a stage acts in: `all`, `0-3` or `0,2`."""

LAYERS = re.compile(r"all|[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*")

WORD = re.compile(r"(?!(true|false|none)$)[A-Za-z_][A-Za-z0-9_]*")
"""A literal that nobody takes for a number, true, false or none."""


@functools.cache
def argument_types(cls: type[Any]) -> dict[str, tuple[Any, ...]]:
    """Return each argument's alternatives: types, `Layers`, and the literal values themselves."""
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise MechanismError(f"an annotation of {cls.__name__} cannot be read: {error}") from error
    return {item.name: _alternatives(cls, item.name, hints[item.name]) for item in dataclasses.fields(cls)}


def _alternatives(cls: type[Any], name: str, hint: Any) -> tuple[Any, ...]:
    """Flatten a field's annotation into the values and types it admits."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(a for part in typing.get_args(hint) for a in _alternatives(cls, name, part))
    if typing.get_origin(hint) is Literal:
        for value in typing.get_args(hint):
            if not (isinstance(value, int) or (isinstance(value, str) and WORD.fullmatch(value))):
                raise MechanismError(f"argument '{name}' of {cls.__name__}: a line cannot write {value!r}")
        return typing.get_args(hint)
    if hint in (float, int, bool, Layers, types.NoneType):
        return (hint,)
    raise MechanismError(
        f"argument '{name}' of {cls.__name__} is annotated {hint}; a stage's arguments are "
        "float, int, bool, Literal[...], Layers, or a union of these"
    )


def fits(value: object, admitted: tuple[Any, ...]) -> bool:
    """Tell whether a value is one of the alternatives."""
    for option in admitted:
        if option is float and is_number(value):
            return _is_finite(value)
        if option is int and is_number(value) and isinstance(value, int):
            return True
        if option is bool and isinstance(value, bool):
            return True
        if option is Layers and isinstance(value, str) and are_layers(value):
            return True
        if option is types.NoneType and value is None:
            return True
        if isinstance(option, str | int) and type(option) is type(value) and option == value:
            return True
    return False


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(number: int | float) -> bool:
    """Tell whether a number is a finite float, or a whole number that can become one."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def are_layers(text: str) -> bool:
    """Tell whether a text names layers; a range runs upwards."""
    if not LAYERS.fullmatch(text):
        return False
    ends = [part.split("-") for part in text.split(",") if "-" in part]
    return all(int(first) <= int(last) for first, last in ends)


def describe(admitted: tuple[Any, ...]) -> str:
    """Say in words what an argument may be."""
    words = {
        float: "a number",
        int: "a whole number",
        bool: "true or false",
        Layers: "layers like all, 0-3 or 0,2",
    }
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
    """Read an argument's value as a line writes it; raise ValueError where it does not fit."""
    for option in admitted:
        if isinstance(option, str | int) and not isinstance(option, type) and text == write(option):
            return option
    if bool in admitted and text in ("true", "false"):
        return text == "true"
    if types.NoneType in admitted and text == "none":
        return None
    if Layers in admitted and are_layers(text):
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
