"""The line that writes a mechanism: stages separated by `|`, each a name with optional arguments.

    line   = stage {"|" stage}            value = number | word | layers
    stage  = name ["(" [argument {"," argument}] ")"]
    argument = [name "="] value

An error shows the line, marks the position and names the closest match.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import NoReturn

from attnlab.errors import MechanismError, closest

from .arguments import LAYERS, Layers, argument_types, read
from .stage import NAMED, REGISTRY, Stage, StageError

TOKEN = re.compile(r"\s*(?P<token>[|(),=]|[^\s|(),=]+)")
MARKS = frozenset("|(),=")


@dataclass(frozen=True)
class Token:
    """A token of the line and its position."""

    text: str
    start: int
    end: int


def fail(line: str, start: int, end: int, message: str) -> NoReturn:
    """Raise an error that shows the line and marks a part of it."""
    marker = " " * start + "^" * max(1, end - start)
    raise MechanismError(f"{message}\n    {line}\n    {marker}")


def tokenize(line: str) -> list[Token]:
    """Split a line into tokens."""
    return [Token(m["token"], m.start("token"), m.end("token")) for m in TOKEN.finditer(line.rstrip())]


class LineReader:
    """Reads the stages of one line from left to right."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.tokens = tokenize(line)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Return the text of a later token, or an empty string at the end."""
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def take(self, wanted: str) -> Token:
        """Take the next token; at the end of the line, fail and name what was expected."""
        if self.at == len(self.tokens):
            end = len(self.line.rstrip())
            fail(self.line, end, end, f"the line ends where {wanted} was expected")
        token = self.tokens[self.at]
        self.at += 1
        return token

    def stages(self) -> list[tuple[Stage, Token]]:
        """Read the whole line."""
        stages = [self.stage()]
        while self.at < len(self.tokens):
            bar = self.take("'|'")
            if bar.text != "|":
                fail(self.line, bar.start, bar.end, f"expected '|' between stages, found '{bar.text}'")
            stages.append(self.stage())
        return stages

    def stage(self) -> tuple[Stage, Token]:
        """Read one stage with its arguments."""
        name = self.take("a stage")
        if name.text in MARKS:
            fail(self.line, name.start, name.end, f"a stage is missing before '{name.text}'")
        if name.text not in REGISTRY:
            hint = closest(name.text, REGISTRY) or f"; the stages are {', '.join(sorted(REGISTRY))}"
            message = f"unknown stage '{name.text}'{hint}"
            if name.text in NAMED:
                stages = f"in a line, write its stages: {NAMED[name.text]}"
                message = f"'{name.text}' is a catalog entry, not a stage; {stages}"
            fail(self.line, name.start, name.end, message)
        cls = REGISTRY[name.text]
        values, spans = self.arguments(cls) if self.peek() == "(" else ({}, {})
        for item in dataclasses.fields(cls):
            has_default = item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
            if not has_default and item.name not in values:
                fail(self.line, name.start, name.end, f"{cls.name} needs {item.name}=…")
        try:
            return cls(**values), name
        except StageError as error:
            start, end = spans.get(error.argument, (name.start, name.end))
            fail(self.line, start, end, str(error))
        except (MechanismError, ValueError) as error:  # a user's stage may reject what its types allow
            fail(self.line, name.start, self.tokens[self.at - 1].end, f"{cls.name}: {error}")

    def arguments(self, cls: type[Stage]) -> tuple[dict[str, object], dict[str, tuple[int, int]]]:
        """Read the arguments in parentheses: the value of each, and its position in the line."""
        self.take("'('")
        order = [item.name for item in dataclasses.fields(cls)]
        values: dict[str, object] = {}
        spans: dict[str, tuple[int, int]] = {}
        while self.peek() != ")":
            if self.peek(1) != "=" and list(values) != order[: len(values)]:
                stray = self.take("')'")
                fail(self.line, stray.start, stray.end, f"{cls.name}: a value after a named one needs a name")
            name, first = self.argument_name(cls, order, len(values))
            if name in values:
                fail(self.line, first.start, first.end, f"{cls.name}: {name} is given twice")
            values[name], end = self.value(cls, name)
            spans[name] = (first.start, end)
            if self.peek() != ")":
                comma = self.take("',' or ')'")
                if comma.text != ",":
                    fail(self.line, comma.start, comma.end, f"expected ',' or ')', found '{comma.text}'")
                if self.peek() == ")":
                    fail(self.line, comma.start, comma.end, "an argument is missing after ','")
        self.take("')'")
        return values, spans

    def argument_name(self, cls: type[Stage], order: list[str], position: int) -> tuple[str, Token]:
        """Read `name =`, or take the name from the position; return it with the argument's first token."""
        if self.peek(1) == "=":
            name = self.take("an argument")
            self.take("'='")
            if name.text not in order:
                takes = f"; it takes {', '.join(order)}" if order else "; it takes none"
                hint = closest(name.text, order) or takes
                fail(self.line, name.start, name.end, f"{cls.name} has no argument '{name.text}'{hint}")
            return name.text, name
        if position >= len(order):
            extra = self.take("')'")
            plural = "s" * (len(order) != 1)
            fail(self.line, extra.start, extra.end, f"{cls.name} takes {len(order) or 'no'} argument{plural}")
        if self.at == len(self.tokens):
            self.take("')'")
        return order[position], self.tokens[self.at]

    def value(self, cls: type[Stage], name: str) -> tuple[object, int]:
        """Read one value; a list of layers may contain commas."""
        admitted = argument_types(cls)[name]
        token = self.take(f"a value for {name}")
        text, end = token.text, token.end
        if text in MARKS:
            fail(self.line, token.start, token.end, f"a value for {name} is missing before '{text}'")
        while Layers in admitted and self.peek() == "," and self.continues_layers():
            self.take("','")
            more = self.take("a layer")
            text, end = f"{text},{more.text}", more.end
        try:
            return read(text, admitted), end
        except ValueError as error:
            fail(self.line, token.start, end, f"{cls.name}: {name} {error}")

    def continues_layers(self) -> bool:
        """Tell whether the token after the comma is another layer, not another argument."""
        after = self.peek(1)
        return bool(LAYERS.fullmatch(after)) and after != "all" and self.peek(2) != "="
