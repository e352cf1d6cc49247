"""A line by layer: different mechanisms in different layers of a model.

    line  = part {";" part}                   dot | softmax | window(64) @ 0-4; dot | softmax @ 5
    part  = mechanism "@" layers ["every" N]  with `every 6`, layer i has the mechanism of layer i mod 6
    layers = layer {"," layer}                layer = number | number "-" number

`Mechanism.parse` and `parse_line` read these and lines of one mechanism; parse_line(str(m)) == m. Gemma 3 repeats five
layers with a window and one without (arXiv:2503.19786).
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from attnlab.errors import MechanismError
from attnlab.notebook import Facts, Showable

from .grammar import LineError, fail, has_layer_marks
from .mechanism import READERS, Mechanism, parse_mechanism
from .stage import NAMED, Stage

WORD = re.compile(r",|[^\s,]+")
LAYER = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
EVERY = "every"
MAX_EVERY = 1000
EXAMPLE = "'@ 0-4' or '@ 0-4 every 6'"


@dataclass(frozen=True)
class LayerPart:
    """The mechanism of some layers; `layers` are ascending numbers from 0."""

    mechanism: Mechanism
    layers: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class LayeredMechanism(Showable):
    """Mechanisms by layer: an immutable value that can be compared, hashed and printed.

    every: the parts repeat after this many layers; None if they name every layer of the model.
    Parts with equal mechanisms become one, and they are in the order of their first layers.
    """

    parts: tuple[LayerPart, ...]
    every: int | None = None

    def __post_init__(self) -> None:
        layers: dict[int, Mechanism] = {}
        for part in self.parts:
            for index in part.layers:
                if index in layers:
                    raise MechanismError(f"layer {index} is given twice")
                layers[index] = part.mechanism
        if not layers:
            raise MechanismError("a mechanism by layer needs at least one layer")
        if self.every is not None and sorted(layers) != list(range(self.every)):
            raise MechanismError(f"'every {self.every}' needs a mechanism for each of the layers 0 to {self.every - 1}")
        by_mechanism: dict[Mechanism, list[int]] = {}
        for index in sorted(layers):
            by_mechanism.setdefault(layers[index], []).append(index)
        merged = tuple(LayerPart(mechanism, tuple(indices)) for mechanism, indices in by_mechanism.items())
        object.__setattr__(self, "parts", merged)

    def at_layer(self, index: int) -> Mechanism:
        """Return the mechanism of a layer of a model."""
        number = index if self.every is None else index % self.every
        for part in self.parts:
            if number in part.layers:
                return part.mechanism
        raise MechanismError(f"'{self}' has no mechanism for layer {index}")

    @property
    def distinct(self) -> tuple[Mechanism, ...]:
        """The different mechanisms of the line."""
        return tuple(part.mechanism for part in self.parts)

    def list_written_stages(self) -> Iterator[Stage]:
        """Yield the stages that the line shows."""
        for part in self.parts:
            yield from part.mechanism.list_written_stages()

    def find_stages_needing(self, need: str) -> tuple[Stage, ...]:
        """Return the stages of any layer whose call requests an input beside its tensors, such as `positions`."""
        return tuple(stage for part in self.parts for stage in part.mechanism.find_stages_needing(need))

    def facts(self) -> Facts:
        """Return a row for each part: its layers and its mechanism."""
        every = "" if self.every is None else f" {EVERY} {self.every}"
        rows = [(f"{_write_layers(part.layers)}{every}", str(part.mechanism)) for part in self.parts]
        return Facts(str(self), columns=("layers", "mechanism"), rows=rows)

    def __repr__(self) -> str:
        return f"Mechanism.parse({str(self)!r})"

    def __str__(self) -> str:
        every = "" if self.every is None else f" {EVERY} {self.every}"
        return "; ".join(f"{part.mechanism} @ {_write_layers(part.layers)}{every}" for part in self.parts)


Line = Mechanism | LayeredMechanism
"""What a line is: one mechanism for all layers, or mechanisms by layer."""


def parse_line(line: str | Line) -> Line:
    """Read a line, by layer or not, or the name of a catalog entry."""
    if isinstance(line, LayeredMechanism):
        return line
    if not isinstance(line, str):
        return parse_mechanism(line)
    text = line if line.isprintable() else " ".join(line.split())  # a line break would misplace the marker of an error
    text = NAMED.get(text.strip(), text)
    return _LayerReader(text).read() if has_layer_marks(text) else parse_mechanism(line)


READERS["layers"] = parse_line


def _write_layers(layers: tuple[int, ...]) -> str:
    """Write ascending numbers as ranges: 0-4,7."""
    # In a run of consecutive numbers, the number minus its place is constant.
    runs = [[number for _, number in run] for _, run in itertools.groupby(enumerate(layers), lambda p: p[1] - p[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


@dataclass(frozen=True)
class _Span:
    """A stretch of the line."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _LayerReader:
    """Reads the parts of a line by layer from left to right."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.known: set[int] = set()
        self.every: int | None = None

    def read(self) -> LayeredMechanism:
        """Read the whole line."""
        parts: list[LayerPart] = []
        start = 0
        for text in self.line.split(";"):
            parts.append(self._read_part(_Span(text, start), is_first=not parts))
            start += len(text) + 1
        if self.every is not None and (missing := set(range(self.every)) - self.known):
            end = len(self.line.rstrip())
            fail(self.line, end, end, f"layer {min(missing)} of '{EVERY} {self.every}' has no mechanism")
        return LayeredMechanism(tuple(parts), self.every)

    def _read_part(self, part: _Span, is_first: bool) -> LayerPart:
        text, mark, after = part.text.partition("@")
        if not text.strip():
            self._fail(part, "a mechanism is missing here")
        if not mark:
            inner = _Span(text.strip(), part.start + len(text) - len(text.lstrip()))
            self._fail(inner, f"this part does not say which layers have it; end it with {EXAMPLE}")
        mechanism = self._read_mechanism(_Span(text, part.start))
        layers, every = self._read_layers(_Span(after, part.start + len(text) + 1))
        if is_first:
            self.every = every
        written = _Span(after.strip(), part.end - len(after.lstrip()))
        if every != self.every:
            wanted = "has no 'every'" if self.every is None else f"has '{EVERY} {self.every}'"
            self._fail(written, f"the first part {wanted}, and all parts must agree in that")
        if every is not None and max(layers) >= every:
            beyond = f"layer {max(layers)} is beyond '{EVERY} {every}', whose layers are 0 to {every - 1}"
            self._fail(written, beyond)
        return LayerPart(mechanism, tuple(sorted(layers)))

    def _read_mechanism(self, part: _Span) -> Mechanism:
        try:
            return parse_mechanism(part.text)
        except LineError as error:
            fail(self.line, part.start + error.start, part.start + error.end, error.problem)

    def _read_layers(self, span: _Span) -> tuple[set[int], int | None]:
        """Read `0-4,7 every 6`: the layers, and the number after `every`."""
        words = [_Span(match[0], span.start + match.start()) for match in WORD.finditer(span.text)]
        layers: set[int] = set()
        if not words:
            self._fail(_Span("@", span.start - 1), f"layers are missing after '@'; write {EXAMPLE}")
        for number, word in enumerate(words):
            if number % 2 == 0:
                layers |= self._read_range(word)
            elif word.text == EVERY:
                return layers, self._read_every(word, words[number + 1 :])
            elif word.text != ",":
                self._fail(word, f"expected ',' or '{EVERY}', found '{word.text}'")
        if words[-1].text == ",":
            self._fail(words[-1], "a layer is missing after ','")
        return layers, None

    def _read_range(self, word: _Span) -> set[int]:
        match = LAYER.fullmatch(word.text)
        if match is None:
            self._fail(word, f"layers are numbers such as 5 and ranges such as 0-4, not '{word.text}'")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            self._fail(word, f"a range is ascending; write {last}-{first}")
        layers = set(range(first, last + 1))
        if twice := layers & self.known:
            self._fail(word, f"layer {min(twice)} is given twice")
        self.known |= layers
        return layers

    def _read_every(self, word: _Span, rest: list[_Span]) -> int:
        if not rest:
            self._fail(word, f"a number is missing after '{EVERY}', such as {EVERY} 6")
        number = rest[0].text
        if not re.fullmatch("[0-9]{1,4}", number) or not 1 <= int(number) <= MAX_EVERY:
            self._fail(rest[0], f"after '{EVERY}' comes a whole number from 1 to {MAX_EVERY}, not '{number}'")
        if len(rest) > 1:
            self._fail(rest[1], f"expected ';' or the end of the line, found '{rest[1].text}'")
        return int(number)

    def _fail(self, span: _Span, message: str) -> NoReturn:
        fail(self.line, span.start, span.end, message)
