"""Labels of classification: names of classes, or a range of numbers, and how values of a file are read."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from attnlab.errors import TaskError, closest
from attnlab.inputs import is_whole_number

TRUTHS = {"true": "1", "yes": "1", "false": "0", "no": "0"}
"""Other spellings of two classes numbered 0 and 1."""


@dataclass(frozen=True)
class Labels:
    """Names of classes, numbered from 0. A value may be a name or a number."""

    names: tuple[str, ...]

    @classmethod
    def collect(cls, values: Iterable[Any]) -> Self:
        """Return the classes that occur in a column, in numerical or alphabetical order."""
        names = {_normalize(value) for value in values}
        is_numeric = all(map(is_whole_number, names))
        return cls(tuple(sorted(names, key=int) if is_numeric else sorted(names)))

    def read(self, value: Any, place: str, what: str = "label") -> int:
        """Return the number of a class; anything else is an error that names the place and the classes."""
        name = _normalize(value)
        if name in self.names:
            return self.names.index(name)
        number = TRUTHS.get(name.lower(), name) if len(self.names) == 2 else name
        if is_whole_number(number) and int(number) < len(self.names):
            return int(number)
        if name.lower() == "nan":
            raise TaskError(f"{place}: the {what} is NaN; the model that made it diverged, so look at its loss")
        known = ", ".join(text if text == str(at) else f"{text} ({at})" for at, text in enumerate(self.names))
        raise TaskError(
            f"{place}: the {what} is {value!r}{closest(name, self.names) or '.'} It must be one of {known}; is "
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


def _normalize(value: Any) -> str:
    """Return a value as files spell it: 1.0 of a numeric table is 1, True is true."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
