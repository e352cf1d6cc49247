"""Prefix consistency of a model: the whole sequence against prefixes of it, and against its own caches.

A dynamic cache grows with the tokens; a static one has all its slots from the start, most of them without a token yet.
`generate` takes the cache, training takes the whole; where they differ, a model is trained for one thing and used for
another.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attnlab.errors import InstallError

from ..check import check
from ..finding import Finding, FindingPart, worst
from ..subject import peak
from .subject import ModelSubject, per_token

NAME = "prefix consistency"
CHUNK = 5
SPARE = 7
"""Slots of a static cache that stay without a token."""


@check(NAME, kind="prefix", on="model")
def prefix_consistency(subject: ModelSubject) -> Finding | None:
    """Compare the whole sequence with prefixes and caches."""
    if not subject.causal:
        return None
    subject = subject.precise
    tokens = subject.tokens(2)
    with torch.no_grad(), subject.mode(False):
        whole = subject.answers(tokens)
        bound = subject.noise(whole)
        parts = [FindingPart("prefix alone", peak(alone(subject, tokens) - whole), bound)]
        if can_cache(subject, tokens):
            parts += [
                FindingPart("cache, a token at a time", peak(cached(subject, tokens, 1) - whole), bound),
                FindingPart(f"cache, {CHUNK} tokens at a time", peak(cached(subject, tokens, CHUNK) - whole), bound),
            ]
            for step in (1, CHUNK) if can_cache_statically(subject, tokens) else ():
                answers = cached(subject, tokens, step, static_cache(subject, tokens))
                parts.append(FindingPart(f"static cache, {step} at a time", peak(answers - whole), bound))
    bad = worst(parts)
    if bad.passed:
        ways = {
            1: "alone (it keeps no cache of keys and values to compare with)",
            3: "alone, from the cache, and from the cache by chunks",
        }.get(len(parts), "alone, from the cache, from the cache by chunks, and from a static cache")
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


def static_cache(subject: ModelSubject, tokens: Tensor) -> Any:
    """Return a cache of fixed size, with more slots than there are tokens."""
    # transformers takes seconds to import, and is here already: the model is its own.
    from transformers import StaticCache

    return StaticCache(config=subject.config, max_cache_len=tokens.shape[1] + SPARE)


def can_cache_statically(subject: ModelSubject, tokens: Tensor) -> bool:
    """Tell whether the model says that it takes a static cache, and its mechanism does not refuse one."""
    if subject.is_encoder_decoder or not getattr(subject.model, "_can_compile_fullgraph", False):
        return False
    try:
        subject.run(tokens[:, :2], use_cache=True, past_key_values=static_cache(subject, tokens))
    except InstallError:
        return False
    return True


def cached(subject: ModelSubject, tokens: Tensor, step: int, held: Any = None) -> Tensor:
    """Return each token's answer where the model is fed so many tokens at a time and keeps a cache."""
    answers = []
    for start in range(0, tokens.shape[1], step):
        piece = tokens[:, start : start + step]
        more = {} if held is None else {"past_key_values": held}
        output = subject.run(piece, use_cache=True, **more)
        answers.append(per_token(output, piece.shape[1]))
        held = output.past_key_values
    return torch.cat(answers, 1)
