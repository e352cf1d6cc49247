"""Equivalences: what must be the same, computed both ways.

Every kernel is the reference. bypass with α = 0 is the baseline; with activation=identity it is the projection
W + αI. Masking after softmax, renormalised, is masking before it. With share(qk) scores are symmetric.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor

from attnlab.kernels.attend import attend, weights
from attnlab.mechanisms import Mechanism
from attnlab.mechanisms.scores import Additive
from attnlab.mechanisms.surroundings import Mask
from attnlab.mechanisms.values import Bypass
from attnlab.mechanisms.weights import Softmax

from .check import check
from .finding import Finding, Part, worst
from .subject import HEAD_DIM, LONG, NUM_HEADS, SHORT, Mode, Subject, noise, peak

NAME = "equivalences"
ROUNDINGS = 1e4
REFERENCE = "reference"


@check(NAME)
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


def kernels_agree(subject: Subject) -> Iterator[Part]:
    """Compare every kernel with the reference, outputs and gradients, with padding and without."""
    for kind in ("none", "keys"):
        mask = None if kind == "none" else torch.arange(LONG)[None, None, None] < LONG - 11
        for mode in subject.modes(torch.float64, mask=kind):
            if mode.kernel == REFERENCE:
                continue
            ours, theirs = (
                results(subject, dataclasses.replace(mode, kernel=kernel), mask) for kernel in (mode.kernel, REFERENCE)
            )
            apart = max(peak(a - b) / max(peak(b), 1e-30) for a, b in zip(ours, theirs, strict=True))
            name = f"is the reference{'' if mask is None else ' with padding'}, {mode}"
            yield Part(name, apart, ROUNDINGS * torch.finfo(torch.float64).eps, "", mode.kernel)


def results(subject: Subject, mode: Mode, mask: Tensor | None) -> list[Tensor]:
    """Return the output, and the gradients of all inputs and parameters."""
    leaves = {name: t.requires_grad_() for name, t in subject.inputs(1, LONG, torch.float64).items()}
    learned = {name: p.double().requires_grad_() for name, p in subject.parameters.items()}
    asked = dataclasses.replace(subject, parameters=learned)
    out = asked.attend(leaves, mode, mask)
    targets = [*leaves.values(), *learned.values()]
    found = torch.autograd.grad(out.square().sum(), targets, allow_unused=True) if out.requires_grad else ()
    return [out, *(torch.zeros_like(t) if g is None else g for t, g in zip(targets, found, strict=bool(found)))]


def identities(subject: Subject) -> Iterator[Part]:
    """Yield the identities that the mechanism's stages promise."""
    mechanism = subject.mechanism
    for stage in mechanism.values:
        if isinstance(stage, Bypass):
            yield from bypass_identities(subject, stage)
    if type(mechanism.weights) is Softmax and mechanism.weights.divide == 1 and True in subject.causalities:
        yield renormalised(subject)
    if mechanism.share.what != "separate":
        yield symmetric(subject)


def bypass_identities(subject: Subject, stage: Bypass) -> Iterator[Part]:
    """Compare α = 0 with no bypass at all, and activation=identity with a projection of W + αI."""
    draw = torch.Generator().manual_seed(subject.seed)
    inputs = subject.inputs(1, SHORT, torch.float64)
    x, first, target = inputs["x"], inputs["first"], stage.on
    others = tuple(other for other in subject.mechanism.values if other is not stage)
    bare = dataclasses.replace(subject.mechanism, values=others)

    def run(mechanism: Mechanism, changed: Tensor) -> Tensor:
        t = {**{name: inputs[name] for name in ("q", "k", "v")}, target: changed}
        kept = mechanism.parameters(NUM_HEADS, HEAD_DIM)
        learned = {name: p.double() for name, p in subject.parameters.items() if name in kept}
        return attend(t["q"], t["k"], t["v"], mechanism, parameters=learned, x=x, first=first)

    def replaced(**fields: object) -> Mechanism:
        new = dataclasses.replace(stage, learn=False, **fields)  # type: ignore[arg-type]
        return dataclasses.replace(
            subject.mechanism, values=tuple(new if other is stage else other for other in subject.mechanism.values)
        )

    plain = run(bare, inputs[target])
    nothing = peak(run(replaced(alpha=0.0), inputs[target]) - plain)
    yield Part("α = 0 is the mechanism without bypass", nothing, 0.0, f"'{stage}'")
    W = torch.randn(HEAD_DIM, HEAD_DIM, generator=draw, dtype=torch.float64)
    added = run(replaced(activation="identity", input="raw"), x @ W)
    folded = run(bare, x @ (W + stage.alpha * torch.eye(HEAD_DIM, dtype=torch.float64)))
    yield Part("activation=identity is W + αI", peak(added - folded), noise(folded, ROUNDINGS), f"'{stage}'")


def renormalised(subject: Subject) -> Part:
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
    apart = peak(after / after.sum(-1, keepdim=True) - before)
    name = "masking after softmax, once renormalised, is masking before it"
    return Part(name, apart, noise(before, ROUNDINGS), f"'{subject.mechanism.weights}'")


def symmetric(subject: Subject) -> Part:
    """Measure how far the scores are from symmetric where queries and keys are one."""
    score = subject.mechanism.score
    k = subject.inputs(1, SHORT, torch.float64)["k"]
    learned = {name: p.double() for name, p in subject.parameters.items()}
    scores = score(k, k, subject.mechanism.params_of(score, learned))
    apart = peak(scores - scores.mT)
    if isinstance(score, Additive):
        return Part("scores are not symmetric", apart, None, "additive has a W_q and a W_k of its own")
    return Part("scores are symmetric", apart, noise(scores, ROUNDINGS), f"'{score}'")
