"""Equivalences: what must be the same, computed both ways.

Every kernel is the reference, also at sizes at which it splits the problem. A row's weights are those of its visible
keys alone. bypass with α = 0 is the baseline; with activation=identity it is the projection
W + αI. Masking after softmax, renormalised, is masking before it. With share(qk) scores are symmetric.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import torch
from torch import Tensor

from attnlab.kernels.attend import attend, weights
from attnlab.kernels.call import MaskKind
from attnlab.mechanisms import Mask, Mechanism, Value

from .check import check
from .finding import Finding, FindingPart, worst
from .hidden import hidden_pairs
from .subject import HEAD_DIM, LONG, NUM_HEADS, ROUNDINGS, SEVERAL, SHORT, Mode, Subject, largest, noise, peak

NAME = "equivalences"
REFERENCE = "reference"
MASKS: tuple[MaskKind, ...] = ("none", "keys", "pairs")

SPANS = {"linear": 2100, "sdpa": 600}
"""Lengths at which these kernels cut the keys too: running sums after 2048 tokens, torch's fused pass after 512."""


@check(NAME, kind="equivalences")
def equivalences(subject: Subject) -> Finding:
    """Compute what must be equal both ways."""
    parts = [*kernels_agree(subject), *identities(subject)]
    bad = worst(parts)
    held = [part.name for part in parts if not part.kernel and part.bound is not None]
    num_kernels = len({part.kernel for part in parts if part.kernel})
    if bad.passed:
        said = f"{num_kernels} {'kernel gives' if num_kernels == 1 else 'kernels give'} the reference's outputs and "
        said += "gradients" + (f"; and {'; '.join(held)}." if held else ".")
    else:
        said = f"Two ways to compute the same differ by {bad.figure:.2g} (allowed {bad.bound:.2g}): {bad.name}."
    where = "" if bad.passed else f"kernel {bad.kernel}" if bad.kernel else bad.note
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=tuple(parts))


def kernels_agree(subject: Subject) -> Iterator[FindingPart]:
    """Compare every kernel with the reference: in both precisions, under all masks, with dropout, and wider heads."""
    ways = [Mode(False, dtype=dtype, mask=mask) for dtype in ROUNDINGS for mask in MASKS]
    ways.append(Mode(False, dtype=torch.float64, dropout=0.2, training=True))
    yield from compared(subject, ways, "")
    # Where a stage adds x to the values, both must be as wide.
    wider = subject.sized(64, 64 if subject.mechanism.values else 48)
    yield from compared(wider, [Mode(False)], f", head_dim {wider.head_dim}")
    split = [Mode(False, dtype=torch.float64), Mode(False, dtype=torch.float64, mask="pairs"), Mode(False, mask="keys")]
    yield from compared(subject.split, split, f", {SEVERAL} sequences of {subject.split.num_heads} heads", SEVERAL)
    for kernel, length in SPANS.items():
        yield from compared(subject, [Mode(False)], f", {length} tokens", length=length, only=kernel)


def compared(
    subject: Subject, ways: list[Mode], said: str, batch: int = 1, length: int = LONG, only: str | None = None
) -> Iterator[FindingPart]:
    """Compare every kernel that can with the reference, in each of some modes; or one kernel only."""
    # Several kernels are compared with one answer of the reference, which takes the longest.
    answer = functools.lru_cache(maxsize=2)(functools.partial(results, subject, batch=batch, length=length))
    for mode in subject.modes(*ways):
        if mode.kernel == REFERENCE or only not in (None, mode.kernel):
            continue
        exact = dataclasses.replace(mode, kernel=REFERENCE)
        theirs = answer(exact, mode.dtype)
        apart = distance(results(subject, mode, mode.dtype, batch, length), theirs)
        bound = ROUNDINGS[mode.dtype] * torch.finfo(mode.dtype).eps
        if mode.dtype == torch.float32:
            # Where scores are large, fp32 itself loses digits: a kernel may lose a few times what the reference loses.
            truth = answer(dataclasses.replace(exact, dtype=torch.float64), mode.dtype)
            bound += 16 * distance(theirs, truth)
        yield FindingPart(f"is the reference, {mode}{said}", apart, bound, "", mode.kernel)


def distance(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Return the largest difference of any result, as a part of the largest number of that result."""
    # A gradient that is next to nothing beside the others, as along a unit vector, is rounding.
    floor = max(1e-30, 1e-3 * largest(peak(b) for b in theirs))
    return largest(peak(a - b) / max(peak(b), floor) for a, b in zip(ours, theirs, strict=True))


def results(subject: Subject, mode: Mode, drawn: torch.dtype, batch: int = 1, length: int = LONG) -> list[Tensor]:
    """Return the output, and the gradients of all inputs and parameters; `drawn` is the precision of the inputs."""
    inputs = {name: t.to(mode.dtype) for name, t in subject.inputs(batch, length, drawn).items()}
    leaves = {name: t.requires_grad_() for name, t in inputs.items()}
    learned = {name: p.to(mode.dtype).requires_grad_() for name, p in subject.parameters.items()}
    asked = dataclasses.replace(subject, parameters=learned)
    out = asked.attend(leaves, mode)
    targets = [*leaves.values(), *learned.values()]
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out.dtype)
    found = torch.autograd.grad(out, targets, cotangent, allow_unused=True) if out.requires_grad else ()
    return [out, *(torch.zeros_like(t) if g is None else g for t, g in zip(targets, found, strict=bool(found)))]


def identities(subject: Subject) -> Iterator[FindingPart]:
    """Yield the identities that the mechanism's stages promise."""
    mechanism = subject.mechanism
    yield hidden_pairs(subject)
    for stage in mechanism.values:
        others = [other for other in mechanism.values if other is not stage and other.target == stage.target]
        # Behind another stage, W + αI would stand in another place.
        if not others:
            yield from value_identities(subject, stage)
    if mechanism.weights.is_softmax and mechanism.weights.divide == 1 and True in subject.causalities:
        yield renormalised(subject)
    if mechanism.share.what != "separate":
        yield symmetric(subject)


def value_identities(subject: Subject, stage: Value) -> Iterator[FindingPart]:
    """Compare a stage's neutral variant with no stage at all, and its identity variant with a projection of W + αI."""
    neutral, identity = stage.neutral(), stage.identity()
    if neutral is None and identity is None:
        return
    draw = torch.Generator().manual_seed(subject.seed)
    inputs = subject.inputs(1, SHORT, torch.float64)
    x, first, target = inputs["x"], inputs["first"], stage.target
    others = tuple(other for other in subject.mechanism.values if other is not stage)
    bare = dataclasses.replace(subject.mechanism, values=others)

    def run(mechanism: Mechanism, changed: Tensor) -> Tensor:
        t = {**{name: inputs[name] for name in ("q", "k", "v")}, target: changed}
        kept = mechanism.parameters(NUM_HEADS, HEAD_DIM)
        learned = {name: p.double() for name, p in subject.parameters.items() if name in kept}
        return attend(t["q"], t["k"], t["v"], mechanism, parameters=learned, x=x, first=first)

    def replaced(new: Value) -> Mechanism:
        values = tuple(new if other is stage else other for other in subject.mechanism.values)
        return dataclasses.replace(subject.mechanism, values=values)

    if neutral is not None:
        nothing = peak(run(replaced(neutral), inputs[target]) - run(bare, inputs[target]))
        yield FindingPart(f"α = 0 is the mechanism without {stage.name}", nothing, 0.0, f"'{stage}'")
    if identity is not None and stage.strength is not None:
        W = torch.randn(HEAD_DIM, HEAD_DIM, generator=draw, dtype=torch.float64)
        added = run(replaced(identity), x @ W)
        folded = run(bare, x @ (W + stage.strength * torch.eye(HEAD_DIM, dtype=torch.float64)))
        bound = noise(folded, ROUNDINGS[torch.float64])
        yield FindingPart("activation=identity is W + αI", peak(added - folded), bound, f"'{stage}'")


def renormalised(subject: Subject) -> FindingPart:
    """Compare weights masked after softmax and divided by their sum with weights masked before it."""
    inputs = subject.inputs(1, SHORT, torch.float64)
    learned = {name: p.double() for name, p in subject.parameters.items()}
    after, before = (
        weights(
            inputs["q"], inputs["k"], dataclasses.replace(subject.mechanism, mask=Mask(where)),
            causal=True, parameters=learned, x=inputs.get("x"),
        )
        for where in ("after", "before")
    )  # fmt: skip
    sums = after.sum(-1, keepdim=True)
    # A row whose visible weights are all below what a float can hold has nothing left to renormalise.
    apart = peak((after / sums - before)[sums[..., 0] > 1e-250])
    name = "masking after softmax, once renormalised, is masking before it"
    return FindingPart(name, apart, noise(before, ROUNDINGS[torch.float64]), f"'{subject.mechanism.weights}'")


def symmetric(subject: Subject) -> FindingPart:
    """Measure how far the scores are from symmetric where queries and keys are one."""
    score = subject.mechanism.score
    k = subject.inputs(1, SHORT, torch.float64)["k"]
    scores = subject.scores(k, k)
    apart = peak(scores - scores.mT)
    if not score.is_symmetric:
        return FindingPart("how far scores are from symmetric", apart, None, f"'{score}' need not be symmetric")
    return FindingPart("scores are symmetric", apart, noise(scores, ROUNDINGS[torch.float64]), f"'{score}'")
