"""Mixers: modules of the user that take the place of attention in a model, from x [b n m] to the output [b n m].

`@mixer("name")` registers an `nn.Module`, and the line `mixer(name)` puts one into each layer of a model.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import nn

from attnlab.errors import MechanismError, closest

from .arguments import MixerName
from .stage import Slot, Stage, StageError, argument, stage

OPTIONS = ("num_heads", "layer", "num_layers", "is_causal")
"""What a constructor may take besides the width: sizes of the attention it replaces, its place, and whether the model
is causal; None if the model does not say."""

MIXERS: dict[str, type[nn.Module]] = {}
"""Every registered module by its name in a line."""

C = TypeVar("C", bound=type[nn.Module])


def mixer(name: str) -> Callable[[C], C]:
    """Register an `nn.Module` class as the mixer of this name; the line `mixer(name)` then puts it into a model.

    The constructor takes `width`, and by name any of `num_heads`, `layer`, `num_layers` and `is_causal`; other
    parameters need a default. `forward(x)` maps [b n m] to [b n m]. It may request `mask` by keyword, booleans [b n]
    that are False at padding; x is 0 there. With a method `step(x, state)` the model can use a cache: it gets the new
    tokens and the state that the call before returned, None at first, and returns their output and the new state, a
    tensor whose first axis is the batch. It may request `mask` too.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise MechanismError(f'@mixer("name") needs a name of lower case letters, digits and _, not {name!r}')

    def register(cls: C) -> C:
        if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
            raise MechanismError(f"mixer '{name}' must be a class that derives from torch.nn.Module, not {cls!r}")
        known = MIXERS.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            taken = f"{known.__module__}.{known.__qualname__}"
            raise MechanismError(f"a mixer named '{name}' exists already: {taken}; choose another name")
        _check_constructor(name, cls)
        _check_method(name, cls, "forward", ("x",))
        if has_step(cls):
            _check_method(name, cls, "step", ("x", "state"))
        MIXERS[name] = cls
        return cls

    return register


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """List the parameters of a method without self, *args and **kwargs."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [item for item in list(inspect.signature(function).parameters.values())[1:] if item.kind not in several]


def _check_constructor(name: str, cls: type[nn.Module]) -> None:
    given = _list_parameters(cls.__init__)
    names = [item.name for item in given]
    if "width" not in names:
        raise MechanismError(
            f"the constructor of mixer '{name}' must take the model's width: write `def __init__(self, width)`"
        )
    for item in given:
        if item.default is item.empty and item.name not in ("width", *OPTIONS):
            hint = closest(item.name, OPTIONS) or f"; it may take {', '.join(OPTIONS)}, or give it a default"
            raise MechanismError(f"the constructor of mixer '{name}' takes '{item.name}', which it is not given{hint}")


def has_step(cls: type[nn.Module]) -> bool:
    """Tell whether a class says how it is computed token by token."""
    return inspect.isfunction(inspect.getattr_static(cls, "step", None))


def _check_method(name: str, cls: type[nn.Module], method: str, needed: tuple[str, ...]) -> None:
    """Refuse a method that is missing, or that cannot be called with what it is given."""
    wanted = f"write `def {method}(self, {', '.join(needed)})`"
    if getattr(cls, method) is getattr(nn.Module, method, None):
        raise MechanismError(f"mixer '{name}' has no {method}: {wanted}")
    given = _list_parameters(getattr(cls, method))
    positional = [item for item in given if item.kind is not item.KEYWORD_ONLY and item.name != "mask"]
    if len(positional) < len(needed):
        raise MechanismError(f"{method} of mixer '{name}' is called with ({', '.join(needed)}); {wanted}")
    for item in given:
        if item.default is item.empty and item.name != "mask" and item not in positional[: len(needed)]:
            raise MechanismError(
                f"{method} of mixer '{name}' takes '{item.name}', which it is not given; {wanted}, and `*, mask` if it "
                "needs the padding mask"
            )


@stage("mixer")
@dataclass(frozen=True)
class Mixer(Stage):
    """A module in place of attention, registered with `@attnlab.mixer`; acts in a model only, and stands alone."""

    slot: ClassVar[Slot] = "mixer"

    module: MixerName = argument(shown="positional")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.module not in MIXERS:
            advice = f'; @attnlab.mixer("{self.module}") above a class registers one, before the line is read'
            raise StageError("module", f"no mixer is named '{self.module}'{closest(self.module, MIXERS) or advice}")

    @property
    def origin(self) -> str:
        """The name of the Python module that defines the class."""
        return self.module_class.__module__

    @property
    def module_class(self) -> type[nn.Module]:
        """The class registered under the name."""
        return MIXERS[self.module]

    @property
    def has_step(self) -> bool:
        """Whether the module can use a cache."""
        return has_step(self.module_class)

    def takes_mask(self, method: str) -> bool:
        """Tell whether a method requests the padding mask."""
        return any(item.name == "mask" for item in _list_parameters(getattr(self.module_class, method)))

    def build(self, width: int, **options: Any) -> nn.Module:
        """Make the module of a layer; `options` are the values of OPTIONS."""
        requested = {item.name for item in _list_parameters(self.module_class.__init__)}
        given = {name: value for name, value in options.items() if name in requested}
        try:
            return self.module_class(width=width, **given)
        except Exception as error:  # the constructor is the user's and may raise anything
            settings = ", ".join(f"{name}={value!r}" for name, value in {"width": width, **given}.items())
            raise MechanismError(
                f"the constructor of '{self}' raised {type(error).__name__} for {settings}: {error}"
            ) from error
