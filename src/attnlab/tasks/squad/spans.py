"""From start and end logits to an answer: the best spans of every window, merged, against having no answer at all.

A span scores start + end. The score of having no answer is that of the null token, the lowest over the windows, less
the best span's: above the threshold the answer is the empty text (Devlin et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import TaskError

from .windows import OUTSIDE, ContextWindow

Logits = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the context, from one character to another, and its score."""

    score: float
    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SquadAnswer:
    """What a model answers: the text that counts, the best spans, and how far having none is ahead of the best."""

    text: str
    spans: tuple[Span, ...]
    null_lead: float

    @property
    def best(self) -> str:
        """The best span's text, whether or not having no answer is ahead of it."""
        return self.spans[0].text if self.spans else ""


@dataclass(frozen=True)
class Search:
    """How spans are looked for: how many are kept, and how many tokens one may have."""

    num_best: int = 20
    max_answer: int = 30

    def of_window(self, window: ContextWindow, starts: Logits, ends: Logits) -> list[Span]:
        """Return the best spans of a window among its best starts and ends, ties in the order of the context."""
        inside = np.flatnonzero(window.begins != OUTSIDE)
        best = (inside[_largest(logits[inside], self.num_best)] for logits in (starts, ends))
        first, last = self._pairs(*best)
        if not first.size:
            # All the best ends stand before all the best starts: any two tokens may then make a span.
            first, last = self._pairs(inside, inside)
        scores = starts[first] + ends[last]
        kept = np.lexsort((last, first, -scores))[: self.num_best]
        return [
            Span(
                float(scores[i]),
                int(window.begins[first[i]]),
                int(window.ends[last[i]]),
                window.text_of(int(first[i]), int(last[i])),
            )
            for i in kept
        ]

    def _pairs(self, first: Places, last: Places) -> tuple[Places, Places]:
        """Return every start with every end that makes a span of an allowed length."""
        length = last[None, :] - first[:, None] + 1
        row, column = np.nonzero((length >= 1) & (length <= self.max_answer))
        return first[row], last[column]

    def of_question(
        self, parts: Iterable[tuple[ContextWindow, Logits, Logits]], threshold: float | None
    ) -> SquadAnswer:
        """Return the answer over all windows of one question; without a threshold there always is one."""
        found: dict[tuple[int, int], Span] = {}
        null = np.inf
        for window, starts, ends in parts:
            check_logits(window, starts, ends)
            null = min(null, float(starts[window.null] + ends[window.null]))
            for span in self.of_window(window, starts, ends):
                known = found.get((span.begin, span.end))
                if known is None or known.score < span.score:
                    found[span.begin, span.end] = span
        ordered = sorted(found.values(), key=lambda span: (-span.score, span.begin, span.end))
        spans = tuple(ordered[: self.num_best])
        lead = null - spans[0].score if spans else np.inf
        has_answer = bool(spans) and (threshold is None or lead <= threshold)
        return SquadAnswer(spans[0].text if has_answer else "", spans, float(lead))


def check_logits(window: ContextWindow, starts: Logits, ends: Logits) -> None:
    """Refuse logits that are no numbers, or not one for each token."""
    num_tokens = len(window.begins)
    if starts.shape != (num_tokens,) or ends.shape != (num_tokens,):
        raise TaskError(
            f"question '{window.key}' has a window of {num_tokens} tokens, but {starts.shape} start and {ends.shape} "
            "end logits; give one of each for every token"
        )
    if np.isnan(starts).any() or np.isnan(ends).any():
        raise TaskError(
            f"the logits for question '{window.key}' have NaN in them; the model diverged, so look at its training loss"
        )


def _largest(values: Logits, count: int) -> Places:
    return np.argsort(-values, kind="stable")[:count]
