"""Padding and batch invariance of a model: a sentence's answers are its own, whatever stands beside or after it.

A sequence is looked at alone, between two others, and in a batch so large that no kernel computes it in one piece.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnlab.kernels import rowwise

from ..check import check
from ..finding import Finding, FindingPart, worst
from ..subject import peak
from .subject import ModelSubject

NAME = "padding and batch invariance"
MOST = 64
"""Sequences of a batch, beyond which longer ones are taken instead."""

TOKENS = 2**15
"""Tokens of a batch at most."""


@check(NAME, kind="padding", on="model")
def padding_invariance(subject: ModelSubject) -> Finding:
    """Change padding and neighbours, and watch the real tokens."""
    subject = subject.precise
    real = subject.length * 2 // 3
    tokens = subject.tokens(1, real)
    with torch.no_grad(), subject.mode(False):
        whole = subject.answers(tokens)
        bound = subject.noise(whole)
        sides = ("right", "left") if can_be_padded_on_the_left(subject) else ("right",)
        parts = [
            FindingPart(f"{what}, on the {side}", peak(padded(subject, tokens, side, salt) - whole), bound, note)
            for side in sides
            for what, salt, note in (
                ("amount", 11, "how much padding there is"),
                ("content", 12, "what stands in the padding"),
            )
        ]
        if subject.is_encoder_decoder:
            parts.append(
                FindingPart("what the encoder reads", encoder_padding(subject, tokens), bound, "the encoder's padding")
            )
        company = torch.cat([subject.tokens(1, real, 13), tokens, subject.tokens(1, real, 14)])
        apart = peak(subject.answers(company)[1:2] - whole)
        parts += [
            FindingPart("neighbours", apart, bound, "its neighbours in the batch"),
            in_a_large_batch(subject),
        ]
    bad = worst(parts)
    if bad.passed:
        said = f"Neither padding on the {' or '.join(sides)}, nor other sequences of the batch change a real token."
    elif bad.figure != bad.figure:
        said = (
            f"A real token's answer is not a number, changed by {bad.note}: a row of padding that sees nothing becomes "
            "NaN, and spreads."
        )
    else:
        said = (
            f"A real token's answer depends on {bad.note} ({bad.figure:.2g}, allowed {bad.bound:.2g}): the same "
            "sentence would score differently in another batch."
        )
    where = "" if bad.passed else subject.where("the attention mask it is given")
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=tuple(parts))


def in_a_large_batch(subject: ModelSubject) -> FindingPart:
    """Compare a sequence alone with the same one as the last of a batch that kernels split."""
    length = subject.length
    batch = splitting_batch(subject, length)
    if batch > MOST:
        length = subject.longest
        batch = splitting_batch(subject, length)
    tokens = subject.tokens(batch, length, salt=15)
    alone = subject.answers(tokens[-1:])
    apart = peak(subject.answers(tokens)[-1:] - alone)
    name = f"neighbours, {batch} sequences of {length} tokens"
    return FindingPart(name, apart, subject.noise(alone), "its neighbours in a batch that kernels split")


def splitting_batch(subject: ModelSubject, length: int) -> int:
    """Return how many sequences of a length a kernel computes half of the queries of at a time."""
    config = subject.config
    width = getattr(config, "hidden_size", None) or 1
    num_heads = getattr(config, "num_attention_heads", None) or 1
    head_dim = getattr(config, "head_dim", None) or max(1, width // num_heads)
    batch = 2
    # A model too small to be split at any sensible size takes seconds for as many tokens as this.
    while rowwise.count_rows(batch, num_heads, length, head_dim) > max(1, length // 2) and batch * length < TOKENS:
        batch += 1
    return batch


def padded(subject: ModelSubject, tokens: Tensor, side: str, salt: int) -> Tensor:
    """Return the real tokens' answers in a padded sequence; the salt decides what the padding is."""
    num_padding = subject.length - tokens.shape[1]
    padding = subject.tokens(1, num_padding, salt)
    real, none = torch.ones_like(tokens), torch.zeros_like(padding)
    if side == "right":
        return subject.answers(torch.cat([tokens, padding], 1), torch.cat([real, none], 1))[:, : tokens.shape[1]]
    mask = torch.cat([none, real], 1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return subject.answers(torch.cat([padding, tokens], 1), mask, position_ids=positions)[:, num_padding:]


def encoder_padding(subject: ModelSubject, tokens: Tensor) -> float:
    """Return how far answers move where the encoder's sequence is padded."""
    read = subject.tokens(1, subject.length // 2, salt=99)
    padding = subject.tokens(1, subject.length // 3, salt=98)
    mask = torch.cat([torch.ones_like(read), torch.zeros_like(padding)], 1)
    plain = subject.answers(tokens, input_ids=read)
    return peak(subject.answers(tokens, input_ids=torch.cat([read, padding], 1), attention_mask=mask) - plain)


def can_be_padded_on_the_left(subject: ModelSubject) -> bool:
    """Tell whether the model takes positions, counted from 0, as batches of prompts need."""
    embeddings = [m for name, m in subject.model.named_modules() if name.endswith("position_embeddings")]
    from_zero = all(getattr(m, "padding_idx", None) is None for m in embeddings)
    return subject.causal and "position_ids" in subject.takes and from_zero and not subject.is_encoder_decoder
