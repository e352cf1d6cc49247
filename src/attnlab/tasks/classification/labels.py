"""What a class is called: names in the order of their numbers, and how a value in a file becomes a number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from attnlab.errors import TaskError, closest

TRUTHS = {"true": "1", "yes": "1", "false": "0", "no": "0"}
"""How yes and no are also written, where two classes are numbered 0 and 1."""


@dataclass(frozen=True)
class Labels:
    """Names of classes, numbered from 0. A value may be a name or a number."""

    names: tuple[str, ...]

    @classmethod
    def found(cls, values: Iterable[Any]) -> Labels:
        """Return the classes that occur in a column, in the order of numbers or of the alphabet."""
        names = {_written(value) for value in values}
        is_numeric = all(name.isdigit() for name in names)
        return cls(tuple(sorted(names, key=int) if is_numeric else sorted(names)))

    def read(self, value: Any, place: str, what: str = "label") -> int:
        """Return the number of a class; anything else is an error that names the place and the classes."""
        written = _written(value)
        if written in self.names:
            return self.names.index(written)
        number = TRUTHS.get(written.lower(), written) if len(self.names) == 2 else written
        if number.isdigit() and int(number) < len(self.names):
            return int(number)
        if written.lower() == "nan":
            raise TaskError(f"{place}: the {what} is NaN; the model that made it diverged, so look at its loss")
        known = ", ".join(f"{name} ({at})" if name != str(at) else name for at, name in enumerate(self.names))
        raise TaskError(
            f"{place}: the {what} is {value!r}{closest(written, self.names) or '.'} It must be one of {known}; is "
            "this the file of another task?"
        )


BINARY = Labels(("0", "1"))


@dataclass(frozen=True)
class Range:
    """Labels that are numbers from a lowest to a highest; a prediction may lie outside."""

    lowest: float
    highest: float

    def read(self, value: Any, place: str, what: str = "label") -> float:
        """Return a number; gold ones outside the range come from another task's file."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TaskError(
                f"{place}: the {what} is {value!r}, not a number; is this the file of another task?"
            ) from None
        if not math.isfinite(number):
            raise TaskError(f"{place}: the {what} is {value}; it must be finite. The model that made it diverged")
        if what == "label" and not self.lowest <= number <= self.highest:
            raise TaskError(
                f"{place}: the label {number:g} is not from {self.lowest:g} to {self.highest:g}; is this the file of "
                "another task?"
            )
        return number


def _written(value: Any) -> str:
    """Write a value as files do: 1.0 of a table read as numbers is 1, True is true."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
