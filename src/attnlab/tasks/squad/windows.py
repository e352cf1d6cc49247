"""A question and a part of its context as one sequence: long contexts become several overlapping windows.

Every token of the context has its character offsets without whitespace: byte-level tokens begin with the space before
their word, and an answer must not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import TaskError

from ..batch import Feature
from ..frame import Encoded, Frame
from .question import SquadQuestion

CHUNK = 512
"""Questions encoded at a time: enough for the tokenizer's threads, within limited memory."""

OUTSIDE = -1
"""The offset of a token outside the context, or of whitespace alone."""

Offsets = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ContextWindow(Feature):
    """A feature of a question: the offsets of each token in the context, and the token that means no answer."""

    context: str
    begins: Offsets
    ends: Offsets
    null: int

    def find_tokens(self, begin: int, end: int) -> tuple[int, int] | None:
        """Return the first and last token of the characters from begin to end; None if the window lacks them."""
        inside = np.flatnonzero(self.begins != OUTSIDE)
        if not inside.size or self.begins[inside[0]] > begin or self.ends[inside[-1]] < end:
            return None
        # Bytes of one character may be several tokens with the same offsets: the outermost are taken.
        first = int(np.searchsorted(self.ends[inside], begin, side="right"))
        last = int(np.searchsorted(self.begins[inside], end, side="left")) - 1
        return int(inside[first]), int(inside[last])

    def get_text(self, first: int, last: int) -> str:
        """Return the text of the context from a first to a last token."""
        return self.context[self.begins[first] : self.ends[last]]


def make_windows(questions: Sequence[SquadQuestion], tokenizer: Any, max_len: int, stride: int) -> list[ContextWindow]:
    """Encode questions with their contexts into windows of at most `max_len` tokens that overlap by `stride`."""
    frame = Frame.of(tokenizer)
    sizes = max_len - frame.num_added(is_pair=True), stride
    windows: list[ContextWindow] = []
    for start in range(0, len(questions), CHUNK):
        chunk = questions[start : start + CHUNK]
        _check_fits(chunk, tokenizer, *sizes)
        texts, contexts = [question.text for question in chunk], [question.context for question in chunk]
        sizing = {"truncation": "only_second", "max_length": sizes[0], "stride": stride}
        encoded = tokenizer(texts, contexts, return_overflowing_tokens=True, **sizing)
        for row, encoding in zip(encoded["overflow_to_sample_mapping"], encoded.encodings, strict=True):
            windows.append(_make_window(chunk[row], frame.complete(encoding), frame, len(windows)))
    return windows


def _check_fits(questions: Sequence[SquadQuestion], tokenizer: Any, max_len: int, stride: int) -> None:
    """Raise an error if a question leaves no room for its context; a question is never truncated."""
    room = max_len - stride - int(tokenizer.num_special_tokens_to_add(pair=True))
    encoded = tokenizer([question.text for question in questions], add_special_tokens=False)["input_ids"]
    for question, ids in zip(questions, encoded, strict=True):
        if len(ids) >= room:
            raise TaskError(
                f"{question.place}: question '{question.id}' has {len(ids)} tokens, but windows of {max_len} that "
                f"overlap by {stride} have room for {max(room - 1, 0)}; raise max_len or lower stride"
            )


def _make_window(question: SquadQuestion, encoded: Encoded, frame: Frame, number: int) -> ContextWindow:
    begins, ends = _strip_offsets(question.context, encoded.offsets, encoded.texts)
    if (begins == OUTSIDE).all():
        raise TaskError(
            f"{question.place}: the tokenizer finds no token in the context of question '{question.id}', "
            f"{question.context[:40]!r}; is it the model's own tokenizer?"
        )
    null = frame.find_position(encoded.ids)
    bare = ContextWindow(question.id, number, encoded.inputs, {}, frame.padding, question.context, begins, ends, null)
    span = bare.find_tokens(*question.span(0)) if question.answers else None
    first, last = (null, null) if span is None else span
    return replace(bare, targets={"start_positions": first, "end_positions": last})


def _strip_offsets(
    context: str, offsets: Sequence[tuple[int, int]], sequence: Sequence[int | None]
) -> tuple[Offsets, Offsets]:
    """Return where each token of the context begins and ends without whitespace."""
    begins, ends = [OUTSIDE] * len(offsets), [OUTSIDE] * len(offsets)
    for token, ((begin, end), which) in enumerate(zip(offsets, sequence, strict=True)):
        if which != 1:
            continue
        text = context[begin:end]
        if solid := text.strip():
            begins[token] = begin + text.index(solid)
            ends[token] = begins[token] + len(solid)
    return np.array(begins, np.int32), np.array(ends, np.int32)
