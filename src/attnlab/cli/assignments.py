"""`name=value` on the command line, read as the field of a settings object that it names."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from attnlab.errors import RequestError, closest

NONE = ("none", "null")
TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def parted(texts: Iterable[str], option: str) -> dict[str, str]:
    """Part `name=value` texts; anything else, or a name twice, is an error."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise RequestError(f"{option} takes name=value, as in {option} lr=1e-4; '{text}' is not that")
        if name.strip() in found:
            raise RequestError(f"{option} {name.strip()}= came twice; give one of them")
        found[name.strip()] = value.strip()
    return found


def filled(kind: type[Any], given: Mapping[str, str], where: str) -> dict[str, Any]:
    """Read texts as the types that the fields of a settings object have."""
    hints = typing.get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    values = {}
    for name, text in given.items():
        if name not in known:
            raise RequestError(
                f"{where} has no setting '{name}'{closest(name, known) or '.'} It has {', '.join(known)}"
            )
        values[name] = read(text, hints[name], f"{where}.{name}")
    return values


def read(text: str, kind: Any, where: str) -> Any:
    """Read a text as a type: a number, a truth, a word, a list with commas, or none where that is allowed."""
    options = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    if type(None) in options and text.lower() in NONE:
        return None
    for option in options:
        origin = typing.get_origin(option)
        if origin is tuple:
            inner = typing.get_args(option)[0]
            return tuple(read(part.strip(), inner, where) for part in text.split(",") if part.strip())
        if origin is typing.Literal and text in typing.get_args(option):
            return text
        if option is bool and text.lower() in TRUTH:
            return TRUTH[text.lower()]
        if option in (int, float):
            try:
                return option(text.replace("_", ""))
            except ValueError:
                continue
        if option is str:
            return text
    raise RequestError(f"{where} is {in_words(options)}, not '{text}'")


def plain(text: str) -> Any:
    """Read a value whose type nobody has declared: a number, a truth, none, or a word."""
    if text.lower() in NONE:
        return None
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def in_words(options: tuple[Any, ...]) -> str:
    """Say what types a value may have."""
    names = {int: "a whole number", float: "a number", bool: "true or false", type(None): "none", str: "a text"}
    said = []
    for option in options:
        words = typing.get_args(option) if typing.get_origin(option) is typing.Literal else ()
        said.append(" or ".join(words) if words else names.get(option, str(option)))
    return " or ".join(said)
