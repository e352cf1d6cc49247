"""Wrong arguments and options of a verb, each as one sentence: what came, what was needed, and what to do."""

import re
from typing import Any

import typer

from attnlab.errors import closest

KINDS = {
    "int_parsing": "a whole number", "int_from_float": "a whole number", "int_parsing_size": "a smaller whole number",
    "float_parsing": "a number", "bool_parsing": "no value",
}  # fmt: skip
"""What an option takes, by the type of pydantic's error."""
BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
MISSING = re.compile(r"Missing (argument|option) '(?P<name>[^']*)'")
EXTRA = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((?P<words>.*)\)")
VALUELESS = re.compile(r"Option '(?P<name>[^']*)' requires an argument")
CHOICES = re.compile(r"is not one of (?P<choices>'.*')")
MAX_SHOWN = 60
MEANT = {
    (
        "attnlab construct",
        "--indices",
    ): "; --subset 0,1 names several keys (average, place-key), --index 0 one (select)",
}
"""What to give in place of an option that a verb does not have, where the closest name is not what is meant."""


def explain_usage(error: typer.TyperException) -> str:
    """Return one sentence on a wrong argument or option; what is not known here is said as typer says it."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    verb = context.command_path if context is not None else "attnlab"
    name = getattr(error, "option_name", None)
    if name is not None and message.startswith("No such option"):
        options = (
            [option for parameter in context.command.params for option in _list_options(parameter)] if context else []
        )
        return f"{verb} has no option {name}{MEANT.get((verb, name)) or closest(name, options) or '.'}"
    if missing := MISSING.match(message):
        return f"{verb} needs {missing['name']}, which is missing"
    if valueless := VALUELESS.match(message):
        return f"{valueless['name']} needs a value behind it"
    if (extra := EXTRA.match(message)) and context is not None:
        names = [
            str(parameter.metavar or parameter.name)
            for parameter in context.command.params
            if not _list_options(parameter)
        ]
        taken = f"takes {' and '.join(names)}" if names else "takes options only"
        return f"{verb} {taken}; '{extra['words'][:MAX_SHOWN]}' is too much (put a text with spaces or | in quotes)"
    return _explain_value(error) or message


def _list_options(parameter: Any) -> list[str]:
    options = [*parameter.opts, *parameter.secondary_opts]
    return [option for option in options if option.startswith("-") and option not in ("-h", "--help")]


def _explain_value(error: typer.TyperException) -> str:
    """Return a sentence on a value of the wrong kind; empty if the error is another."""
    parameter: Any = getattr(error, "param", None)
    cause: Any = error.__cause__
    if parameter is None or not hasattr(cause, "errors"):
        return ""
    first = cause.errors()[0]
    name, given = (
        (_list_options(parameter) or [parameter.metavar or parameter.name])[0],
        str(first["input"])[:MAX_SHOWN],
    )
    bounds = first.get("ctx", {})
    kind = KINDS.get(first["type"], "")
    if bound := next((key for key in BOUNDS if key in bounds), None):
        kind = f"a number of {BOUNDS[bound]} {bounds[bound]}"
    elif listed := CHOICES.search(first["msg"]):
        choices = re.findall(r"'([^']*)'", listed["choices"])
        kind = " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))
    return f"{name} takes {kind}, not '{given}'" if kind else ""
