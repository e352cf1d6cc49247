"""Prefix consistency of a model: the whole sequence against prefixes of it, and against the model's caches.

A dynamic cache grows with the tokens; a static one has all its slots from the start, most of them still empty.
`generate` uses a cache, training the whole sequence; if they differ, a model is not used as it was trained.
"""

from typing import Any

import torch
from torch import Tensor

from attnlab.errors import InstallError
from attnlab.install import mechanism_of
from attnlab.install.compat import supports_static_cache
from attnlab.install.mixer import refuses_cache

from ..check import check
from ..finding import Finding, FindingPart, judge_parts
from ..subject import peak
from .subject import ModelSubject, find_token_outputs

NAME = "prefix consistency"
CHUNK = 5
SPARE = 7
"""Slots of a static cache that stay empty."""


@check(NAME, kind="prefix", on="model", moves_parameters=True)
def prefix_consistency(subject: ModelSubject) -> Finding | None:
    """Compare the whole sequence with prefixes and caches."""
    if not subject.causal:
        return None
    subject = subject.precise
    tokens = subject.tokens(2)
    with torch.no_grad(), subject.mode(False):
        whole = subject.outputs(tokens)
        prefixes = [subject.outputs(tokens[:, :end])[:, -1:] for end in range(1, tokens.shape[1] + 1)]
        outputs = {"prefix alone": torch.cat(prefixes, 1)}
        if _can_cache(subject, tokens):
            outputs["cache, a token at a time"] = _decode(subject, tokens, 1)
            outputs[f"cache, {CHUNK} tokens at a time"] = _decode(subject, tokens, CHUNK)
            for step in (1, CHUNK) if _can_cache_statically(subject, tokens) else ():
                cache = _make_static_cache(subject, tokens)
                outputs[f"static cache, {step} at a time"] = _decode(subject, tokens, step, cache)
    bound = subject.noise(whole)
    parts = [FindingPart(name, peak(output - whole), bound) for name, output in outputs.items()]
    ways = {
        1: "alone (it keeps no cache of keys and values to compare with)",
        3: "alone, from the cache, and from the cache by chunks (a static cache it does not take)",
    }.get(len(parts), "alone, from the cache, from the cache by chunks, and from a static cache")
    return judge_parts(
        NAME, parts,
        passed=f"A token gets the same output from the whole sequence as from the tokens before it {ways}.",
        failed=lambda bad: (
            f"From the past alone ({bad.name}) the model's outputs differ from those for the whole sequence "
            f"({bad.figure:.2g}, allowed {bad.bound:.2g}): what it learns in training it will not do in use."
        ),
        where=lambda _: subject.locate_fault("its mask, and the positions of queries against a longer cache"),
    )  # fmt: skip


def _can_cache(subject: ModelSubject, tokens: Tensor) -> bool:
    if not {"past_key_values", "use_cache"} <= subject.arguments:
        return False
    mechanism = mechanism_of(subject.model)
    if mechanism is not None and refuses_cache(mechanism):
        return False
    return getattr(subject.run(tokens[:, :1], use_cache=True), "past_key_values", None) is not None


def _make_static_cache(subject: ModelSubject, tokens: Tensor) -> Any:
    # transformers takes seconds to import; here the model has imported it already.
    from transformers import StaticCache

    return StaticCache(config=subject.config, max_cache_len=tokens.shape[1] + SPARE)


def _can_cache_statically(subject: ModelSubject, tokens: Tensor) -> bool:
    """Tell whether the model takes a static cache, and its mechanism does not refuse one."""
    if subject.is_encoder_decoder or not supports_static_cache(subject.model):
        return False
    try:
        subject.run(tokens[:, :2], use_cache=True, past_key_values=_make_static_cache(subject, tokens))
    except InstallError:
        return False
    return True


def _decode(subject: ModelSubject, tokens: Tensor, step: int, cache: Any = None) -> Tensor:
    """Return each token's output if the model gets `step` tokens at a time and keeps a cache."""
    outputs = []
    for start in range(0, tokens.shape[1], step):
        piece = tokens[:, start : start + step]
        more = {} if cache is None else {"past_key_values": cache}
        output = subject.run(piece, use_cache=True, **more)
        part = find_token_outputs(output, piece.shape[1])
        assert part is not None  # the whole sequence had one
        outputs.append(part)
        cache = output.past_key_values
    return torch.cat(outputs, 1)
