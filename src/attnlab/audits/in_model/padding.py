"""Padding and batch invariance of a model: outputs must not depend on padding, nor on other sequences in the batch.

A sequence is compared alone, between two others, and in a batch so large that kernels split it.
"""

import torch
from torch import Tensor

from attnlab.kernels import rowwise

from ..check import check
from ..finding import Finding, FindingPart, judge_parts
from ..padding import NAME, explain_difference
from ..subject import peak
from .subject import ModelSubject

MAX_BATCH = 64
"""The largest number of sequences in a batch; if more are needed, sequences are longer instead."""

TOKENS = 2**15
"""The largest number of tokens in a batch."""

NOTES = {11: "how much padding there is", 12: "the content of the padding"}
"""What a draw of padding tokens tests, by its salt."""


@check(NAME, kind="padding", on="model", moves_parameters=True)
def padding_invariance(subject: ModelSubject) -> Finding:
    """Change padding and other sequences, and compare the outputs of real tokens."""
    subject = subject.precise
    real = subject.length * 2 // 3
    tokens = subject.tokens(1, real)
    with torch.no_grad(), subject.mode(False):
        whole = subject.outputs(tokens)
        bound = subject.noise(whole)
        sides = ("right", "left") if _takes_left_padding(subject) else ("right",)
        parts = [
            FindingPart(f"{name}, on the {side}", peak(_run_padded(subject, tokens, side, salt) - whole), bound, note)
            for side in sides
            for name, (salt, note) in zip(("amount", "content"), NOTES.items(), strict=True)
        ]
        if subject.is_encoder_decoder:
            difference = _pad_encoder(subject, tokens)
            parts.append(FindingPart("input of the encoder", difference, bound, "the encoder's padding"))
        batch = torch.cat([subject.tokens(1, real, 13), tokens, subject.tokens(1, real, 14)])
        difference = peak(subject.outputs(batch)[1:2] - whole)
        parts.append(FindingPart("neighbours", difference, bound, "its neighbours in the batch"))
        parts.append(_compare_in_large_batch(subject))
    return judge_parts(
        NAME, parts,
        passed=f"Neither padding on the {' or '.join(sides)}, nor other sequences of the batch change a real token.",
        failed=explain_difference,
        where=lambda _: subject.locate_fault("the attention mask it is given"),
    )  # fmt: skip


def _compare_in_large_batch(subject: ModelSubject) -> FindingPart:
    """Compare a sequence alone with the same one as the last of a batch that kernels split."""
    length = subject.length
    batch = _find_splitting_batch(subject, length)
    if batch > MAX_BATCH:
        length = subject.longest
        batch = _find_splitting_batch(subject, length)
    tokens = subject.tokens(batch, length, salt=15)
    alone = subject.outputs(tokens[-1:])
    difference = peak(subject.outputs(tokens)[-1:] - alone)
    name = f"neighbours, {batch} sequences of {length} tokens"
    return FindingPart(name, difference, subject.noise(alone), "its neighbours in a batch that kernels split")


def _find_splitting_batch(subject: ModelSubject, length: int) -> int:
    """Return the number of sequences of which a kernel computes half of the queries at a time."""
    config = subject.config
    num_heads = getattr(config, "num_attention_heads", None) or 1
    batch = 2
    # A batch beyond TOKENS would take seconds, so a model too small to be split by then is not.
    while rowwise.count_rows(batch, num_heads, length) > max(1, length // 2) and batch * length < TOKENS:
        batch += 1
    return batch


def _run_padded(subject: ModelSubject, tokens: Tensor, side: str, salt: int) -> Tensor:
    """Return the real tokens' outputs in a padded sequence; the salt determines the padding tokens."""
    num_padding = subject.length - tokens.shape[1]
    padding = subject.tokens(1, num_padding, salt)
    real, none = torch.ones_like(tokens), torch.zeros_like(padding)
    if side == "right":
        return subject.outputs(torch.cat([tokens, padding], 1), torch.cat([real, none], 1))[:, : tokens.shape[1]]
    mask = torch.cat([none, real], 1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return subject.outputs(torch.cat([padding, tokens], 1), mask, position_ids=positions)[:, num_padding:]


def _pad_encoder(subject: ModelSubject, tokens: Tensor) -> float:
    """Return how much outputs change if the encoder's sequence is padded."""
    read = subject.tokens(1, subject.length // 2, salt=99)
    padding = subject.tokens(1, subject.length // 3, salt=98)
    mask = torch.cat([torch.ones_like(read), torch.zeros_like(padding)], 1)
    plain = subject.outputs(tokens, input_ids=read)
    return peak(subject.outputs(tokens, input_ids=torch.cat([read, padding], 1), attention_mask=mask) - plain)


def _takes_left_padding(subject: ModelSubject) -> bool:
    """Tell whether the model takes positions, counted from 0, as batches of prompts need."""
    embeddings = [m for name, m in subject.model.named_modules() if name.endswith("position_embeddings")]
    from_zero = all(getattr(m, "padding_idx", None) is None for m in embeddings)
    return subject.causal and "position_ids" in subject.arguments and from_zero and not subject.is_encoder_decoder
