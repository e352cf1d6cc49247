"""Causal leak in a model: does what it makes of a token depend on a later one?

Asked with no mask, with a mask of ones and with padding, because each takes another way through a model's code; in
evaluation and in training, where dropout takes the same draw before and after the change.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..check import check
from ..finding import Finding, FindingPart, show, worst
from ..subject import noise
from .subject import ModelSubject

NAME = "causal leak"


@check(NAME, kind="leak", on="model")
def causal_leak(subject: ModelSubject) -> Finding | None:
    """Look for any answer that depends on a later token."""
    if not subject.causal:
        return None
    parts: list[FindingPart] = []
    for training in (False, True):
        with subject.mode(training):
            for kind, mask in masks(subject):
                parts.append(by_change(subject, kind, mask, training))
                parts.append(by_future(subject, kind, mask, training))
                if "inputs_embeds" in subject.takes and not subject.is_encoder_decoder:
                    parts.append(by_gradient(subject, kind, mask, training))
    bad = worst(parts)
    with subject.mode(False):
        table = gradient_map(subject, None) if "inputs_embeds" in subject.takes else None
    if bad.passed:
        said = f"No answer of the model depends on a later token, in {len(parts)} trials over masks and modes."
    else:
        said = (
            f"The model sees the future: {bad.note} changes by {bad.figure:.2g}, allowed {show(bad.bound)} "
            f"({bad.name}); its training loss will look better than it can be in use."
        )
    where = "its mask, and whether it minds module.is_causal where the mask is None"
    return Finding(
        NAME, bad.passed, bad.figure, bad.bound, said, "" if bad.passed else subject.where(where),
        parts=tuple(parts), data={} if table is None else {"map": table.tolist()},
    )  # fmt: skip


def masks(subject: ModelSubject) -> Iterator[tuple[str, Tensor | None]]:
    """Yield the masks a model is called with: none, one that hides nothing, and padding on the right."""
    ones = torch.ones(1, subject.length, dtype=torch.long, device=subject.device)
    padded = ones.clone()
    padded[:, -subject.length // 4 :] = 0
    yield "no mask", None
    yield "a mask of ones", ones
    yield "padding", padded


def by_change(subject: ModelSubject, kind: str, mask: Tensor | None, training: bool) -> FindingPart:
    """Change one token after the other, and watch the answers before it."""
    length = subject.length
    tokens = subject.tokens(1).expand(length, -1)
    step = subject.tokens(length, 1, salt=1)
    changed = torch.where(torch.eye(length, dtype=torch.bool, device=tokens.device), step, tokens)
    full = None if mask is None else mask.expand(length, -1)
    with torch.no_grad():
        before, after = subject.answers(tokens, full), subject.answers(changed, full)
    moved = (after - before).abs().amax(-1).double()
    moved = moved.masked_fill(torch.ones(length, length, dtype=torch.bool, device=moved.device).triu(), 0)
    spot = int(moved.nan_to_num(nan=torch.inf).argmax())
    later, query = divmod(spot, length)
    note = f"the answer at {query} with token {later}"
    return FindingPart(f"change, {kind}, {word(training)}", float(moved.flatten()[spot]), noise(before), note)


def by_future(subject: ModelSubject, kind: str, mask: Tensor | None, training: bool) -> FindingPart:
    """Change the whole future of a longer sequence from some token on, and watch the answers before it."""
    length = subject.longest
    starts = torch.tensor(sorted({t for t in (1, length // 4, length // 2, 64, 128, length - 1) if 0 < t < length}))
    tokens = subject.tokens(1, length).expand(len(starts), -1)
    position = torch.arange(length)
    changed = torch.where((position >= starts[:, None]).to(tokens.device), subject.tokens(1, length, salt=1), tokens)
    # The same kind of mask, as long as this sequence: what was hidden at the end stays hidden at the end.
    full = None if mask is None else nn.functional.pad(mask, (length - mask.shape[1], 0), value=1)
    full = None if full is None else full.expand(len(starts), -1)
    with torch.no_grad():
        before, after = subject.answers(tokens, full), subject.answers(changed, full)
    moved = (after - before).abs().amax(-1).double().cpu().masked_fill(position >= starts[:, None], 0)
    spot = int(moved.nan_to_num(nan=torch.inf).argmax())
    row, query = divmod(spot, length)
    note = f"the answer at {query} with the tokens from {int(starts[row])} on"
    return FindingPart(
        f"change of {length} tokens, {kind}, {word(training)}", float(moved.flatten()[spot]), noise(before), note
    )


def by_gradient(subject: ModelSubject, kind: str, mask: Tensor | None, training: bool) -> FindingPart:
    """Find the largest gradient that reaches a later token's embedding, which must be exactly 0."""
    table = gradient_map(subject, mask).triu(1)
    spot = int(table.nan_to_num(nan=torch.inf).argmax())
    query, later = divmod(spot, subject.length)
    note = f"the answer at {query} with token {later}"
    return FindingPart(f"gradient, {kind}, {word(training)}", float(table.flatten()[spot]), 0.0, note)


def gradient_map(subject: ModelSubject, mask: Tensor | None) -> Tensor:
    """Return how strongly the answer at i depends on token j, [n n]."""
    length = subject.length
    tokens = subject.tokens(1).expand(length, -1)
    embed = subject.model.get_input_embeddings()  # type: ignore[operator]
    leaf = embed(tokens).detach().requires_grad_()
    full = None if mask is None else mask.expand(length, -1)
    # Not the leaf itself: a model may change what it is given in place.
    answers = subject.answers(tokens, full, inputs_embeds=leaf * 1)
    draw = torch.Generator().manual_seed(5)
    cotangent = torch.randn(answers.shape, generator=draw).to(answers)
    cotangent = cotangent * torch.eye(length, device=answers.device)[..., None]
    found: Tensor = torch.autograd.grad(answers, leaf, cotangent)[0]
    return found.abs().amax(-1).double()


def word(training: bool) -> str:
    """Name a mode."""
    return "training" if training else "evaluation"
