"""A line of text as an example of language modelling, and what a model lost on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.data import Source
from attnlab.errors import TaskError

from ..reading import opened


@dataclass(frozen=True, slots=True)
class Line:
    """One text, by its number in the source; blank lines are no examples."""

    id: str
    text: str
    place: str
    cluster: str | None = None
    """The article that a line is of, where its source marks articles."""


@dataclass(frozen=True, slots=True)
class LineLoss:
    """The sum of −log p over the tokens of a line that were predicted, and how many of these were right."""

    nats: float = 0.0
    num_tokens: int = 0
    num_right: int = 0
    num_bytes: int = 0
    """The UTF-8 bytes of the text that these tokens stand for."""

    def __add__(self, other: LineLoss) -> LineLoss:
        return LineLoss(
            self.nats + other.nats,
            self.num_tokens + other.num_tokens,
            self.num_right + other.num_right,
            self.num_bytes + other.num_bytes,
        )

    @property
    def per_token(self) -> float:
        """The mean loss of a token."""
        return self.nats / self.num_tokens


def read_lines(source: str | Path | Source, split: str | None = None) -> list[Line]:
    """Read the documents of a source: lines of a text file, or the text column of a table."""
    found = opened(source, split)
    return [
        Line(str(number), text, f"{found.name}, document {number + 1}", article)
        for number, (text, article) in enumerate(found.documents_of_articles())
    ]


def lines_of(texts: Sequence[str]) -> list[Line]:
    """Make examples of texts that are given."""
    return [Line(str(number), text, f"text {number + 1}") for number, text in enumerate(texts)]


def clusters_of(lines: Sequence[Line]) -> list[str] | None:
    """Return the article of each line; None where no two lines share one, so that each line is on its own."""
    clusters = [f"line {line.id}" if line.cluster is None else line.cluster for line in lines]
    return clusters if len(set(clusters)) < len(clusters) else None


def total(losses: Mapping[str, LineLoss], lines: Sequence[Line]) -> LineLoss:
    """Add the losses of lines up; a line without one is an error."""
    if not lines:
        raise TaskError("there is no line to score; give a text with at least one")
    missing = next((line for line in lines if line.id not in losses), None)
    if missing is not None:
        raise TaskError(f"{missing.place}: no prediction for '{missing.id}'; every line needs one")
    summed = sum((losses[line.id] for line in lines), LineLoss())
    if summed.num_tokens == 0:
        raise TaskError("no token of these lines was predicted, so there is no loss to take the mean of")
    return summed


def perplexity(loss: LineLoss) -> float:
    """Return exp of the mean loss of a token; infinity where that is past what a number holds."""
    try:
        return math.exp(loss.per_token)
    except OverflowError:
        return math.inf
