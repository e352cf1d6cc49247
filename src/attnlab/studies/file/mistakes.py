"""What is wrong with a study file, all of it in one message: where each mistake is, and the closest match of a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError, closest
from attnlab.training.spec import list_names

from .choice import chosen
from .consistency import Misfit, misfits, of_choices
from .design import Design
from .lines import Lines, line_of
from .overrides import wrong_settings

MOST_SHOWN = 20
NAMES = "a name of letters, digits and . _ + - that begins with a letter or a digit"
RENAMED = {"stages": "phases", "phases": "segments"}
"""Words of older study files."""
LONGEST = 80
"""Characters of a name or a value that are shown."""


@dataclass(frozen=True)
class Origin:
    """Where the values of a study come from: the lines of a file, but for those that a budget or `--set` gave."""

    name: str
    lines: Lines = field(default_factory=dict)
    given: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def of(self, place: Sequence[str | int]) -> str:
        """Say where a value comes from."""
        for end in range(len(place), 0, -1):
            if (path := tuple(map(str, place[:end]))) in self.given:
                return self.given[path]
        line = line_of(self.lines, place)
        return f"{self.name}, line {line}" if line else self.name


def check(content: Mapping[str, Any], origin: Origin) -> Design:
    """Make a study of plain data, or raise one error that holds all that is wrong with it."""
    try:
        study = Design.model_validate(content)
    except ValidationError as error:
        # What does not fit together is looked for here also where single values are wrong.
        places = [(one["loc"], one) for one in error.errors(include_url=False, include_context=False) if one["loc"]]
        named = list(of_choices(content))  # of all names, where those that are not taken give the closest match
        apart = [*named, *(one for one in misfits(chosen(content)) if one[0] not in [place for place, _ in named])]
        described = [(place, describe(one)) for place, one in places[:MOST_SHOWN]] + apart[:MOST_SHOWN]
        raise StudyError(listed(described, len(places) + len(apart), origin)) from error
    if wrong := list(wrong_settings(study)):
        raise StudyError(listed(wrong, len(wrong), origin))
    return study


def listed(wrong: Sequence[Misfit], number: int, origin: Origin) -> str:
    """Write mistakes one a line, with what each value comes from."""
    said = dict.fromkeys(f"{origin.of(place)}: {message}" for place, message in wrong)
    more = [f"and {number - MOST_SHOWN} more"] if number > MOST_SHOWN else []
    return "\n".join([*list(said)[:MOST_SHOWN], *more])


def describe(error: Any) -> str:
    """Say one mistake, and the closest match where a name is unknown."""
    place = tuple(error["loc"])
    dotted = shortened(".".join(str(step) for step in place if step != "[key]"))
    if error["type"] == "extra_forbidden":
        if place[-1] in RENAMED and (place[-1] == "stages" or len(place) > 1):
            words = "a study has [[phases]], and a phase [[phases.segments]]"
            return f"'{dotted}' is called '{RENAMED[place[-1]]}' now: {words}"
        known = list_names(Design, place[:-1])
        hint = closest(str(place[-1])[:LONGEST], known) or "."
        return f"nothing is called '{dotted}'{hint} There is {', '.join(known)}"
    if error["type"] == "missing":
        return f"'{dotted}' is missing"
    if error["type"] == "string_pattern_mismatch":
        needed = NAMES if place[-1] in ("[key]", "name", "baseline", "after") else "a text without control characters"
        return f"'{dotted}': give {needed}"
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    # Its repr could be huge, or too deep to make.
    is_plain = isinstance(error["input"], str | bool | float) or (
        isinstance(error["input"], int) and abs(error["input"]) < 10**40
    )
    shown = f", not {shortened(repr(error['input']))}" if is_plain and error["type"] != "value_error" else ""
    return f"'{dotted}': {message[:1].lower()}{message[1:]}{shown}"


def shortened(text: str) -> str:
    """Cut a text that is too long to be shown."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
