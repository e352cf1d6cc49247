"""What `@stage` checks of a class: its fields, and the signatures of its methods against those of its slot."""

import dataclasses
import difflib
import inspect
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from attnlab.errors import MechanismError, closest

from .arguments import argument_types, describe, fits

NEEDS: Mapping[str, tuple[str, ...]] = {
    "score": ("positions", "visible", "x"),
    "weights": ("positions", "visible", "x"),
    "mask": ("positions", "num_heads", "scores", "visible"),
    "features": ("before",),
    "values": ("tokens", "before"),
    "output": ("x", "own", "layer"),
}
"""The inputs that stages of each slot may request. Stages of other slots get all their inputs as arguments."""

RESERVED = (
    "name", "slot", "needs", "inputs", "traits", "at", "parameters", "parameters_at", "is_scheduled", "notes", "advice",
    "origin",
)  # fmt: skip
"""Attributes of every stage; no argument may have one of these names."""

SIMILARITY = 0.88
"""How alike two names must be to count as one misspelt: one letter in eight or more."""

NOTHING_LEARNED = "booleans have no gradient, so that a mask has arguments and no learned parameters"

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def find_interface(cls: type[Any]) -> type[Any]:
    """Return the class that defines the slot of a stage: Score, Weights, Value, Output …."""
    return next(base for base in cls.__mro__ if "slot" in vars(base))


def check_class(cls: type[Any]) -> None:
    """Refuse a class that sets its own attributes, and defaults that no line can write, before `dataclass` sees it."""
    if issubclass(cls, torch.nn.Module):
        raise MechanismError(
            f"{cls.__name__} is a torch.nn.Module, and a stage has no state: derive it from "
            f"{find_interface(cls).__name__ if hasattr(cls, 'slot') else 'its slot'} alone, and declare learned "
            f"tensors: {_write_declaration('name')} (a module in place of attention is registered with @attnlab.mixer)"
        )
    if inspect.isfunction(vars(cls).get("__init__")) and "__dataclass_params__" not in vars(cls):
        raise MechanismError(
            f"{cls.__name__} defines __init__, and the arguments of a stage are its fields: write `name: float = 1.0` "
            f"in the class for each, and declare learned tensors: {_write_declaration('name')}; other numbers are "
            "computed in the call"
        )
    _check_defaults(cls)


def explain_assignment(cls: type[Any], error: Exception) -> str:
    """Return what to write in place of an attribute that a stage sets of itself, with the place of the assignment."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    attribute = next(iter(re.findall(r"'(\w+)'", str(error))), "it")
    return (
        f"{cls.__name__} sets self.{attribute} (in {frames[-1].name}, line {frames[-1].lineno} of "
        f"{frames[-1].filename}), and a stage has no state: declare a learned tensor, "
        f"{_write_declaration(attribute)}; compute other numbers in the call, or in a @property"
    )


def refuse_trained(cls: type[Any], attribute: str, value: object) -> None:
    """Refuse an attribute that holds a trained tensor."""
    if isinstance(value, torch.nn.Parameter | torch.nn.Module):
        raise MechanismError(
            f"{cls.__name__} has a torch.nn.{type(value).__name__} '{attribute}', which would be neither trained nor "
            f"saved; declare it: {_write_declaration(attribute)}"
        )


def _write_declaration(name: str) -> str:
    return f'`def parameters(self, dims): return {{"{name}": Parameter((dims.num_heads, …), low, high)}}`'


def _check_defaults(cls: type[Any]) -> None:
    """Refuse a missing default, or one that no line can write, before `dataclass` refuses it in its own words."""
    inherited = [item.name for item in dataclasses.fields(cls) if item.default is not dataclasses.MISSING]
    for name, hint in inspect.get_annotations(cls).items():
        default = vars(cls).get(name)
        if inherited and name not in vars(cls) and "ClassVar" not in str(hint):
            raise MechanismError(
                f"argument '{name}' of {cls.__name__} needs a default, since '{inherited[0]}', which comes before it, "
                f"has one: write `{name}: float = …` (learned tensors are declared in `parameters`)"
            )
        if isinstance(default, list | dict | set):
            raise MechanismError(
                f"argument '{name}' of {cls.__name__} has the default {default!r}; a stage's arguments are float, int, "
                "bool, Literal[...], Layers, or a union of these"
            )


def check_fields(name: str, cls: type[Any]) -> None:
    """Refuse fields that cannot be arguments of a line, and trained tensors outside `parameters`."""
    for item in dataclasses.fields(cls):
        if item.name in (*RESERVED, *cls.traits):
            raise MechanismError(f"stage '{name}' cannot have a field '{item.name}': attnlab uses that name; rename it")
        if not item.init:
            raise MechanismError(f"stage '{name}': '{item.name}' has init=False; every field is an argument of a line")
    admitted_types = argument_types(cls)  # type: ignore[arg-type]  # a class is hashable
    for item in dataclasses.fields(cls):
        admitted = admitted_types[item.name]
        if item.default is not dataclasses.MISSING and not fits(item.default, admitted):
            wanted = describe(admitted)
            raise MechanismError(f"stage '{name}': the default of '{item.name}' must be {wanted}, not {item.default!r}")
    for attribute, value in vars(cls).items():
        refuse_trained(cls, attribute, value)


def check_methods(name: str, cls: type[Any]) -> None:
    """Refuse methods that the slot does not call, or not with these arguments."""
    interface = find_interface(cls)
    slots = [base for base in cls.__mro__ if "slot" in vars(base)]
    if len(slots) > 1:
        names = " and ".join(base.__name__ for base in slots)
        raise MechanismError(f"stage '{name}' derives from {names}; a stage answers one question: choose one of them")
    _check_names(name, cls, interface)
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        wanted = ", ".join(f"def {method}({_write_signature(getattr(interface, method))})" for method in missing)
        hint = _suggest_method(cls, interface, missing)
        raise MechanismError(f"stage '{name}' must define the methods {', '.join(missing)}: {wanted}{hint}")
    if cls.slot == "mask" and "parameters" in {attribute for attribute, _, _ in _list_overridden(cls, interface)}:
        raise MechanismError(f"stage '{name}' declares parameters: {NOTHING_LEARNED}; learn a bias in a Score instead")
    if "__call__" in vars(cls) and not any("__call__" in vars(base) for base in interface.__mro__):
        raise MechanismError(
            f"stage '{name}' derives from {interface.__name__} and defines __call__, which is never called in the slot "
            f"{cls.slot}; derive from Score, Weights, Mask, Value or Output"
        )
    for method, own, original in _list_overridden(cls, interface):
        if isinstance(original, property) and inspect.isfunction(own):
            raise MechanismError(f"stage '{name}': {method} is read as an attribute; put @property above def {method}")
        if inspect.isfunction(original):
            _check_signature(name, cls, method, own, original)
    _check_definitions(name, cls, interface)


def _check_names(name: str, cls: type[Any], interface: type[Any]) -> None:
    """Refuse a method or trait whose name is nearly one of the slot's: it would be ignored."""
    known = [attribute for attribute in dir(interface) if not attribute.startswith("_")]
    for attribute in _list_unknown(cls, interface):
        if near := difflib.get_close_matches(attribute.strip("_"), [*known, "call"], 1, SIMILARITY):
            meant = "__call__" if near[0] == "call" else near[0]
            raise MechanismError(
                f"stage '{name}' defines '{attribute}', which nothing reads; did you mean '{meant}'? A helper of your "
                "own needs another name, such as one that begins with _"
            )


def _check_definitions(name: str, cls: type[Any], interface: type[Any]) -> None:
    """Refuse a class that defines none of the methods that its slot calls: it would change nothing."""
    called = [method for method, own in vars(interface).items() if inspect.isfunction(own) and _is_called(method)]
    overridden = {method for method, _, _ in _list_overridden(cls, interface)}
    if cls is interface or overridden & {*called}:
        return
    if not called:
        raise MechanismError(
            f"stage '{name}' derives from {interface.__name__}, whose slot '{cls.slot}' has a fixed set of choices and "
            "calls no method; derive from Score, Weights, Mask, HeadMixing or another slot"
        )
    wanted = ", ".join(f"def {method}({_write_signature(getattr(interface, method))})" for method in called)
    raise MechanismError(
        f"stage '{name}' defines none of the methods that the slot '{cls.slot}' calls, so that it would change "
        f"nothing; define one of these: {wanted}{_suggest_method(cls, interface, called)}"
    )


def _suggest_method(cls: type[Any], interface: type[Any], methods: list[str]) -> str:
    """Return which of some methods an own one may be meant to be, or an empty string."""
    for attribute in _list_unknown(cls, interface):
        if near := difflib.get_close_matches(attribute, methods, 1):
            return f"; did you mean '{near[0]}' by '{attribute}'?"
    return ""


def _is_called(method: str) -> bool:
    return method == "__call__" or not (method.startswith("_") or method in RESERVED)


def _list_unknown(cls: type[Any], interface: type[Any]) -> list[str]:
    """List the attributes of a stage's own classes that are neither its arguments nor known to its slot."""
    fields = {item.name for item in dataclasses.fields(cls)}
    own = [attribute for base in cls.__mro__[: cls.__mro__.index(interface)] for attribute in vars(base)]
    known = {*dir(interface), *fields}
    return [attribute for attribute in own if attribute not in known and not attribute.startswith("_")]


def _list_overridden(cls: type[Any], interface: type[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the attributes that a stage's own classes define anew: name, new and original value."""
    for base in cls.__mro__[: cls.__mro__.index(interface)]:
        for attribute, own in vars(base).items():
            original = inspect.getattr_static(interface, attribute, None)
            if original is not None and (attribute == "__call__" or not attribute.startswith("__")):
                yield attribute, own, original


def _list_positional(function: Callable[..., Any]) -> list[str]:
    return [item.name for item in inspect.signature(function).parameters.values() if item.kind in POSITIONAL]


def _write_signature(function: Callable[..., Any]) -> str:
    return ", ".join(_list_positional(function))


def _check_signature(name: str, cls: type[Any], method: str, own: Any, original: Callable[..., Any]) -> None:
    needed = _list_positional(original)
    wanted = f"write `def {method}({', '.join(needed)})`"
    if not inspect.isfunction(own):
        kind = type(own).__name__
        raise MechanismError(f"stage '{name}': {method} must be a method with a self, not a {kind}; {wanted}")
    given = _list_positional(own)
    takes_any = any(item.kind is item.VAR_POSITIONAL for item in inspect.signature(own).parameters.values())
    if takes_any and len(given) <= len(needed):
        return
    if len(given) < len(needed) or (set(given) == set(needed) and given != needed):
        came = f"is def {method}({', '.join(given)}) and is called with ({', '.join(needed[1:])})"
        raise MechanismError(f"stage '{name}': {method} {came}; {wanted}")
    available = NEEDS.get(cls.slot, ()) if method == "__call__" else ()
    surplus = [argument for argument in given if argument not in needed] if set(needed) <= set(given) else []
    for extra in surplus or given[len(needed) :]:
        if extra in available:
            hint = f"ask for it by keyword: `def {method}({', '.join(needed)}, *, {extra})`"
        elif cls.slot == "mask":
            hint = f"{NOTHING_LEARNED}; write `def {method}(self, *, positions)`, with any of {', '.join(available)}"
        else:
            hint = f"make it a field of the class, or a parameter; {wanted}"
        raise MechanismError(f"stage '{name}': {method} takes '{extra}', which it is not given; {hint}")


def read_needs(name: str, cls: type[Any]) -> dict[str, bool]:
    """Return the inputs that the call requests by keyword, and whether each is required."""
    call = inspect.getattr_static(cls, "__call__", None)
    parameters = inspect.signature(call).parameters.values() if call is not None else ()
    needs = {item.name: item.default is item.empty for item in parameters if item.kind is item.KEYWORD_ONLY}
    available = NEEDS.get(cls.slot, ())
    for need in needs:
        if need not in available:
            hint = closest(need, available) or (f"; it may ask for {' or '.join(available)}" if available else "")
            raise MechanismError(f"stage '{name}' asks for '{need}', which a {cls.slot} stage is not given{hint}")
    if vars(cls).get("num_before") is not None and "before" not in needs:
        raise MechanismError(
            f"stage '{name}' declares num_before, and its call does not request these tokens: write "
            f"`def __call__({_write_signature(find_interface(cls).__call__)}, *, before)`"
        )
    return needs
