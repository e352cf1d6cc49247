"""From start and end logits to an answer: the best spans of every window, merged, against the empty answer.

A span scores start + end. The lead of the empty answer is the lowest score of the null token over the windows minus the
best span's score; above the threshold the answer is empty (Devlin et al. 2019).
"""

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
    """A span of characters of the context, and its score."""

    score: float
    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SquadAnswer:
    """The predicted text, the best spans, and the lead of the empty answer over the best span."""

    text: str
    spans: tuple[Span, ...]
    null_lead: float

    @property
    def best(self) -> str:
        """The best span's text, even if the empty answer leads."""
        return self.spans[0].text if self.spans else ""


@dataclass(frozen=True)
class Search:
    """The search for spans: how many are kept, and the most tokens of one."""

    num_best: int = 20
    max_answer: int = 30

    def search_window(self, window: ContextWindow, starts: Logits, ends: Logits) -> list[Span]:
        """Return the best spans of a window among its best starts and ends, ties in the order of the context."""
        inside = np.flatnonzero(window.begins != OUTSIDE)
        best = (inside[np.argsort(-logits[inside], kind="stable")[: self.num_best]] for logits in (starts, ends))
        first, last = self._pair(*best)
        if not first.size:
            # All best ends precede all best starts: consider all pairs of tokens.
            first, last = self._pair(inside, inside)
        scores = starts[first] + ends[last]
        kept = np.lexsort((last, first, -scores))[: self.num_best]
        best_pairs = [(float(scores[i]), int(first[i]), int(last[i])) for i in kept]
        return [Span(s, int(window.begins[i]), int(window.ends[j]), window.get_text(i, j)) for s, i, j in best_pairs]

    def _pair(self, first: Places, last: Places) -> tuple[Places, Places]:
        """Return every start with every end that makes a span of an allowed length."""
        length = last[None, :] - first[:, None] + 1
        row, column = np.nonzero((length >= 1) & (length <= self.max_answer))
        return first[row], last[column]

    def search_question(
        self, parts: Iterable[tuple[ContextWindow, Logits, Logits]], threshold: float | None
    ) -> SquadAnswer:
        """Return the answer over all windows of one question; without a threshold it is never empty."""
        best_spans: dict[tuple[int, int], Span] = {}
        null = np.inf
        for window, starts, ends in parts:
            _check_logits(window, starts, ends)
            null = min(null, float(starts[window.null] + ends[window.null]))
            for span in self.search_window(window, starts, ends):
                known = best_spans.get((span.begin, span.end))
                if known is None or known.score < span.score:
                    best_spans[span.begin, span.end] = span
        ordered = sorted(best_spans.values(), key=lambda span: (-span.score, span.begin, span.end))
        spans = tuple(ordered[: self.num_best])
        lead = null - spans[0].score if spans else np.inf
        has_answer = bool(spans) and (threshold is None or lead <= threshold)
        return SquadAnswer(spans[0].text if has_answer else "", spans, float(lead))


def _check_logits(window: ContextWindow, starts: Logits, ends: Logits) -> None:
    num_tokens = len(window.begins)
    if starts.shape != (num_tokens,) or ends.shape != (num_tokens,):
        raise TaskError(
            f"question '{window.key}' has a window of {num_tokens} tokens, but {starts.shape} start and {ends.shape} "
            "end logits; give one of each for every token"
        )
    if np.isnan(starts).any() or np.isnan(ends).any():
        raise TaskError(
            f"the logits for question '{window.key}' contain NaN; the model diverged, so check its training loss"
        )
