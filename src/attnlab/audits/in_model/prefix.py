"""Prefix consistency of a model: the whole sequence against prefixes of it, and against its own cache.

`generate` takes the cache, training takes the whole; where they differ, a model is trained for one thing and used for
another.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..check import check
from ..finding import Finding, Part, worst
from ..subject import peak
from .subject import ModelSubject, per_token

NAME = "prefix consistency"
CHUNK = 5


@check(NAME, on="model")
def prefix_consistency(subject: ModelSubject) -> Finding | None:
    """Compare the whole sequence with prefixes and caches."""
    if not subject.causal:
        return None
    subject = subject.precise
    tokens = subject.tokens(2)
    with torch.no_grad(), subject.mode(False):
        whole = subject.answers(tokens)
        bound = subject.noise(whole)
        parts = [Part("prefix alone", peak(alone(subject, tokens) - whole), bound)]
        if can_cache(subject, tokens):
            parts += [
                Part("cache, a token at a time", peak(cached(subject, tokens, 1) - whole), bound),
                Part(f"cache, {CHUNK} tokens at a time", peak(cached(subject, tokens, CHUNK) - whole), bound),
            ]
    bad = worst(parts)
    if bad.passed:
        ways = (
            "alone, from the cache, and from the cache by chunks"
            if len(parts) > 1
            else "alone (it keeps no cache of keys and values to compare with)"
        )
        said = f"A token gets the same answer from the whole sequence as from the tokens before it {ways}."
    else:
        said = (
            f"From the past alone ({bad.name}) the model answers otherwise than with the whole sequence there "
            f"({bad.figure:.2g}, allowed {bad.bound:.2g}): what it learns in training it will not do in use."
        )
    where = "" if bad.passed else subject.where("its mask, and where queries stand against a longer cache")
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=tuple(parts))


def alone(subject: ModelSubject, tokens: Tensor) -> Tensor:
    """Return each token's answer from its prefix alone."""
    ends = range(1, tokens.shape[1] + 1)
    return torch.cat([subject.answers(tokens[:, :end])[:, -1:] for end in ends], 1)


def can_cache(subject: ModelSubject, tokens: Tensor) -> bool:
    """Tell whether the model keeps keys and values of what went before."""
    if "past_key_values" not in subject.takes or "use_cache" not in subject.takes:
        return False
    return getattr(subject.run(tokens[:, :1], use_cache=True), "past_key_values", None) is not None


def cached(subject: ModelSubject, tokens: Tensor, step: int) -> Tensor:
    """Return each token's answer where the model is fed so many tokens at a time and keeps a cache."""
    held: Any = None
    answers = []
    for start in range(0, tokens.shape[1], step):
        piece = tokens[:, start : start + step]
        more = {} if held is None else {"past_key_values": held}
        output = subject.run(piece, use_cache=True, **more)
        answers.append(per_token(output, piece.shape[1]))
        held = output.past_key_values
    return torch.cat(answers, 1)
