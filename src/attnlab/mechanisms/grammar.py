"""The line that writes a mechanism: stages separated by `|`, each a name with optional arguments.

    line   = stage {"|" stage}            value = number | word | layers
    stage  = name ["(" [argument {"," argument}] ")"]
    argument = [name "="] value

An error shows the line, marks the position and names the closest match. `layered.py` reads lines by layer, whose parts
are such lines.
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import NoReturn

from attnlab.errors import MechanismError, closest

from .arguments import LAYER, Layers, argument_types, read
from .stage import NAMED, REGISTRY, Stage, StageError, find_undecorated_stage, name_argument

TOKEN = re.compile(r"\s*(?P<token>[|(),=]|[^\s|(),=]+)")
MARKS = frozenset("|(),=")
LAYER_MARKS = "@;"
"""What only a line by layer has: `dot | softmax | window(64) @ 0-4; dot | softmax @ 5`."""

OTHER_NAMES = {
    "sink": "softmax(sink=learned)", "sinks": "softmax(sink=learned)", "softcap": "cap(50)", "soft_cap": "cap(50)",
    "sliding": "window(256)", "sliding_window": "window(256)", "local": "window(256)", "rotary": "rope",
    "l1": "manhattan", "l2": "euclidean", "rbf": "euclidean", "qk_norm": "cosine(scale=learned)",
}  # fmt: skip
"""Stages by other names that people use for them, each with what to write."""


@dataclass(frozen=True)
class Token:
    """A token of the line and its position."""

    text: str
    start: int
    end: int


class LineError(MechanismError):
    """A mistake in a line: what it is, and where it starts and ends."""

    problem: str
    start: int
    end: int


def fail(line: str, start: int, end: int, message: str) -> NoReturn:
    """Raise an error that shows the line and marks a part of it."""
    marker = " " * start + "^" * max(1, end - start)
    error = LineError(f"{message}\n    {line}\n    {marker}")
    error.problem, error.start, error.end = message, start, end
    raise error


def has_layer_marks(line: str) -> bool:
    """Tell whether a line gives mechanisms by layer."""
    return any(mark in line for mark in LAYER_MARKS)


def refuse_layers(line: str) -> None:
    """Refuse a line by layer where the mechanism of one layer is needed."""
    at = min((line.find(mark) for mark in LAYER_MARKS if mark in line), default=None)
    if at is not None:
        part = line[:at].strip() or "dot | softmax"
        message = "this line gives mechanisms by layer, and one mechanism is needed here"
        fail(line, at, at + 1, f"{message}; pass one part, such as '{part}'")


def tokenize(line: str) -> list[Token]:
    """Split a line into tokens."""
    return [Token(m["token"], m.start("token"), m.end("token")) for m in TOKEN.finditer(line.rstrip())]


class LineReader:
    """Reads the stages of one line from left to right."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.tokens = tokenize(line)
        self.at = 0

    def read_stages(self) -> list[tuple[Stage, Token]]:
        """Read the whole line: each stage, with the token of its name."""
        stages = [self._read_stage()]
        while self.at < len(self.tokens):
            bar = self._take("'|'")
            if bar.text != "|":
                self._fail(bar, f"expected '|' between stages, found '{bar.text}'")
            stages.append(self._read_stage())
        return stages

    def _peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def _take(self, wanted: str) -> Token:
        if self.at == len(self.tokens):
            end = len(self.line.rstrip())
            fail(self.line, end, end, f"the line ends where {wanted} was expected")
        self.at += 1
        return self.tokens[self.at - 1]

    def _fail(self, token: Token, message: str) -> NoReturn:
        fail(self.line, token.start, token.end, message)

    def _read_stage(self) -> tuple[Stage, Token]:
        name = self._take("a stage")
        if name.text in MARKS:
            self._fail(name, f"a stage is missing before '{name.text}'")
        if name.text not in REGISTRY and name.text in NAMED:
            stages = f"in a line, write its stages: {NAMED[name.text]}"
            self._fail(name, f"'{name.text}' is a catalog entry, not a stage; {stages}")
        if name.text not in REGISTRY:
            hint = closest(name.text, REGISTRY) or f"; the stages are {', '.join(sorted(REGISTRY))}"
            if name.text.lower() in OTHER_NAMES:
                hint = f"; write {OTHER_NAMES[name.text.lower()]}"
            if (undecorated := find_undecorated_stage(name.text)) is not None:
                hint = f'; {undecorated.__name__} is not registered: put @stage("{name.text}") above the class'
            self._fail(name, f"unknown stage '{name.text}'{hint}")
        cls = REGISTRY[name.text]
        values, spans = self._read_arguments(cls) if self._peek() == "(" else ({}, {})
        for item in dataclasses.fields(cls):
            has_default = item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
            if not has_default and item.name not in values:
                self._fail(name, f"{cls.name} needs {item.name}=…")
        try:
            return cls(**values), name
        except StageError as error:
            fail(self.line, *spans.get(error.argument, (name.start, name.end)), str(error))
        except (MechanismError, ValueError) as error:  # a user's stage may reject what its types allow
            fail(self.line, name.start, self.tokens[self.at - 1].end, f"{cls.name}: {error}")

    def _read_arguments(self, cls: type[Stage]) -> tuple[dict[str, object], dict[str, tuple[int, int]]]:
        """Read the arguments in parentheses: the value of each, and its position in the line."""
        self._take("'('")
        fields = {name_argument(item.name): item.name for item in dataclasses.fields(cls)}
        order = list(fields)
        values: dict[str, object] = {}
        spans: dict[str, tuple[int, int]] = {}
        while self._peek() != ")":
            if self._peek(1) != "=" and list(values) != list(fields.values())[: len(values)]:
                self._fail(self._take("')'"), f"{cls.name}: a value after a named one needs a name")
            written, first = self._read_name(cls, order, len(values))
            name = fields[written]
            if name in values:
                self._fail(first, f"{cls.name}: {written} is given twice")
            values[name], end = self._read_value(cls, name)
            spans[name] = (first.start, end)
            if self._peek() != ")":
                comma = self._take("',' or ')'")
                if comma.text != ",":
                    self._fail(comma, f"expected ',' or ')', found '{comma.text}'")
                if self._peek() == ")":
                    self._fail(comma, "an argument is missing after ','")
        self._take("')'")
        return values, spans

    def _read_name(self, cls: type[Stage], order: list[str], position: int) -> tuple[str, Token]:
        """Read `name =`, or take the name from the position; return it with the argument's first token."""
        if self._peek(1) == "=":
            name = self._take("an argument")
            self._take("'='")
            if name.text not in order:
                hint = closest(name.text, order) or f"; it takes {', '.join(order) or 'none'}"
                known = (*cls.traits, *(item.name for item in dataclasses.fields(cls)))
                if name.text in vars(cls) and name.text not in known:
                    hint = f"; it is an attribute without a type: write `{name.text}: float = …` in the class"
                self._fail(name, f"{cls.name} has no argument '{name.text}'{hint}")
            return name.text, name
        if position >= len(order):
            plural = "s" * (len(order) != 1)
            self._fail(self._take("')'"), f"{cls.name} takes {len(order) or 'no'} argument{plural}")
        if self.at == len(self.tokens):
            self._take("')'")
        return order[position], self.tokens[self.at]

    def _read_value(self, cls: type[Stage], name: str) -> tuple[object, int]:
        """Read one value, and where it ends; a list of layers may contain commas."""
        admitted = argument_types(cls)[name]
        token = self._take(f"a value for {name}")
        text, end = token.text, token.end
        if text in MARKS:
            self._fail(token, f"a value for {name} is missing before '{text}'")
        # After a comma, another layer continues the value, unless it is the name of an argument.
        while Layers in admitted and self._peek() == "," and LAYER.fullmatch(self._peek(1)) and self._peek(2) != "=":
            self._take("','")
            more = self._take("a layer")
            text, end = f"{text},{more.text}", more.end
        try:
            return read(text, admitted), end
        except ValueError as error:
            can_learn = text == "learned" and "learn" in argument_types(cls)
            hint = f"; to learn it, write {cls.name}({name_argument(name)}=0.5, learn=true)" if can_learn else ""
            fail(self.line, token.start, end, f"{cls.name}: {name_argument(name)} {error}{hint}")
