"""Causal leak in a model: does its output at a token depend on a later token?

Tested without a mask, with a mask of ones and with padding, since each takes a different path through a model's code;
in evaluation and in training, where dropout draws the same before and after a change.
"""

import copy
import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..check import check
from ..finding import Finding, FindingPart, judge_parts, show
from ..leak import describe_cancelling, is_rounding
from ..subject import find_largest, noise
from .subject import ModelSubject

NAME = "causal leak"


@check(NAME, kind="leak", on="model", moves_parameters=True)
def causal_leak(subject: ModelSubject) -> Finding | None:
    """Search for outputs that depend on a later token."""
    if not subject.causal:
        return None
    takes_embeddings = "inputs_embeds" in subject.arguments
    parts: list[FindingPart] = []
    for training in (False, True):
        with subject.mode(training):
            for kind, mask in _make_masks(subject):
                case = f"{kind}, {'training' if training else 'evaluation'}"
                parts += [_change_tokens(subject, case, mask), _change_future(subject, case, mask)]
                if takes_embeddings and not subject.is_encoder_decoder:
                    parts.append(_find_gradient(subject, case, mask))
    with subject.mode(False):
        data = {"map": _map_gradients(subject, None).tolist()} if takes_embeddings else {}
    return judge_parts(
        NAME, parts,
        passed=f"No output of the model depends on a later token, in {len(parts)} trials over masks and modes.",
        failed=lambda bad: (
            describe_cancelling(bad, f"the gradient of {bad.note}")
            if _cancels(subject, parts)
            else f"The model sees the future: {bad.note} changes by {bad.figure:.2g}, allowed {show(bad.bound)} "
            f"({bad.name}); its training loss will look better than it can be in use."
        ),
        where=lambda _: subject.locate_fault("its mask, and whether it uses module.is_causal if the mask is None"),
        data=data,
    )  # fmt: skip


def _cancels(subject: ModelSubject, parts: list[FindingPart]) -> bool:
    """Tell whether later tokens are read and cancel: they change no output, and their gradient is rounding, in fp64
    too."""
    failed = [part for part in parts if not part.passed]
    if any(not part.name.startswith("gradient") for part in failed):
        return False
    exact = dataclasses.replace(subject, model=copy.deepcopy(subject.model).double())
    with exact.mode(False):
        gradients = _map_gradients(exact, None)
    largest = float(gradients.max())
    return is_rounding(float(gradients.triu(1).max()), largest, torch.float64) and all(
        is_rounding(part.figure, largest, subject.dtype) for part in failed
    )


def _make_masks(subject: ModelSubject) -> Iterator[tuple[str, Tensor | None]]:
    """Yield the masks a model is called with: none, one that hides nothing, and padding on the right."""
    ones = torch.ones(1, subject.length, dtype=torch.long, device=subject.device)
    padded = ones.clone()
    padded[:, -subject.length // 4 :] = 0
    yield "no mask", None
    yield "a mask of ones", ones
    yield "padding", padded


def _change_tokens(subject: ModelSubject, case: str, mask: Tensor | None) -> FindingPart:
    """Change one token after another, and compare the outputs before it."""
    length = subject.length
    tokens = subject.tokens(1).expand(length, -1)
    step = subject.tokens(length, 1, salt=1)
    changed = torch.where(torch.eye(length, dtype=torch.bool, device=tokens.device), step, tokens)
    change, bound = _compare(subject, tokens, changed, mask)
    size, later, query = find_largest(change.tril(-1))
    return FindingPart(f"change, {case}", size, bound, f"the output at {query} with token {later}")


def _change_future(subject: ModelSubject, case: str, mask: Tensor | None) -> FindingPart:
    """Change the whole future of a longer sequence from some token on, and compare the outputs before it."""
    length = subject.longest
    starts = torch.tensor(sorted({t for t in (1, length // 4, length // 2, 64, 128, length - 1) if 0 < t < length}))
    is_later = torch.arange(length) >= starts[:, None]
    tokens = subject.tokens(1, length).expand(len(starts), -1)
    changed = torch.where(is_later.to(tokens.device), subject.tokens(1, length, salt=1), tokens)
    # The same kind of mask for the longer sequence: padding stays at the end.
    longer = None if mask is None else nn.functional.pad(mask, (length - mask.shape[1], 0), value=1)
    change, bound = _compare(subject, tokens, changed, longer)
    size, row, query = find_largest(change.masked_fill(is_later, 0))
    note = f"the output at {query} with the tokens from {int(starts[row])} on"
    return FindingPart(f"change of {length} tokens, {case}", size, bound, note)


def _compare(subject: ModelSubject, tokens: Tensor, changed: Tensor, mask: Tensor | None) -> tuple[Tensor, float]:
    """Return how much each output changes, [b n], and how much it may change by rounding."""
    full = None if mask is None else mask.expand(len(tokens), -1)
    with torch.no_grad():
        before, after = subject.outputs(tokens, full), subject.outputs(changed, full)
    return (after - before).abs().amax(-1).double().cpu(), noise(before)


def _find_gradient(subject: ModelSubject, case: str, mask: Tensor | None) -> FindingPart:
    """Find the largest gradient of a later token's embedding, which must be exactly 0."""
    size, query, later = find_largest(_map_gradients(subject, mask).triu(1))
    return FindingPart(f"gradient, {case}", size, 0.0, f"the output at {query} with token {later}")


def _map_gradients(subject: ModelSubject, mask: Tensor | None) -> Tensor:
    """Return how strongly the output at i depends on token j, [n n]."""
    length = subject.length
    tokens = subject.tokens(1).expand(length, -1)
    embed = subject.model.get_input_embeddings()  # type: ignore[operator]
    leaf = embed(tokens).detach().requires_grad_()
    full = None if mask is None else mask.expand(length, -1)
    # Not the leaf itself: a model may change its input in place.
    outputs = subject.outputs_of_embeddings(tokens, full, leaf * 1)
    cotangent = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(5)).to(outputs)
    cotangent = cotangent * torch.eye(length, device=outputs.device)[..., None]
    gradient: Tensor = torch.autograd.grad(outputs, leaf, cotangent)[0]
    return gradient.abs().amax(-1).double()
