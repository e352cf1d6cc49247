"""Gradient flow: can training reach everything? Queries, keys, values and every learned parameter must get a gradient.

Beside it stands what is left of the gradient to queries and keys when the scores are 10⁵ times as large: softmax
saturates there, which is reported, not judged.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart
from .subject import Mode, Subject, peak

NAME = "gradient flow"
LENGTH = 48
SATURATION = 1e5
JUDGED = ("q", "k", "v")
WORDS = {"q": "queries", "k": "keys", "v": "values", "x": "the layer's input", "first": "the first layer's values"}


@check(NAME, kind="gradients")
def gradient_flow(subject: Subject) -> Finding:
    """Look for what gets no gradient, or one that is no number."""
    causal = subject.causalities[-1]
    sizes, later = reach(subject, causal), reach(subject.moved(), causal)
    starved = [name for name in judged(subject) if not sizes[name] > 0]
    # What starts where its gradient happens to be 0, as behind a gate of 0, still learns; what is never used does not.
    dead = [name for name in starved if not later[name] > 0]
    broken = [name for name in sizes if not sizes[name] < torch.inf]
    parts = [
        FindingPart(f"gradient to {word(name)}", size, note=named(name, dead, broken)) for name, size in sizes.items()
    ]
    parts.append(FindingPart("gradient to queries and keys left at scores × 1e5", saturated(subject, causal, sizes)))
    passed = not dead and not broken
    fewest = min((sizes[name] for name in judged(subject)), default=0.0)
    return Finding(
        NAME, passed, float(len(dead) + len(broken)), 0.0,
        sentence(subject, dead, broken, parts[-1].figure, [name for name in starved if name not in dead]),
        "" if passed else culprit(subject, dead or broken), parts=tuple(parts), data={"smallest": fewest},
    )  # fmt: skip


def judged(subject: Subject) -> list[str]:
    """Name what must get a gradient."""
    return [*JUDGED, *subject.parameters]


def reach(subject: Subject, causal: bool, factor: float = 1.0) -> dict[str, float]:
    """Return the largest gradient that reaches each input and parameter; 0 where none does.

    factor multiplies queries and keys.
    """
    inputs = subject.inputs(2, LENGTH, torch.float64)
    inputs = {name: t * factor if name in ("q", "k") else t for name, t in inputs.items()}
    leaves = {name: t.requires_grad_() for name, t in inputs.items()}
    learned = {name: p.double().requires_grad_() for name, p in subject.parameters.items()}
    asked = Subject(subject.mechanism, subject.causalities, subject.seed, learned)
    out = asked.attend(leaves, Mode(causal, "reference", torch.float64))
    targets: dict[str, Tensor] = {**leaves, **learned}
    if not out.requires_grad:
        return dict.fromkeys(targets, 0.0)
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5), dtype=out.dtype)
    found = torch.autograd.grad(out, list(targets.values()), cotangent, allow_unused=True)
    return {name: 0.0 if g is None else peak(g) for name, g in zip(targets, found, strict=True)}


def saturated(subject: Subject, causal: bool, sizes: dict[str, float]) -> float:
    """Return the share of the gradient to queries and keys that is left when both are large."""
    factor = SATURATION**0.5
    large = reach(subject, causal, factor)
    # d/dq of f(factor·q) is factor times the gradient that arrives behind the factor.
    shares = [large[name] * factor / sizes[name] for name in ("q", "k") if sizes[name] > 0]
    return min(shares, default=0.0)


def sentence(subject: Subject, dead: list[str], broken: list[str], left: float, late: list[str]) -> str:
    """Explain the finding to a student."""
    if dead:
        them = " and ".join(word(name) for name in dead)
        return f"Training cannot change {them}: the output does not depend on them smoothly, so their gradient is 0."
    if broken:
        return f"The gradient to {' and '.join(word(name) for name in broken)} is not a finite number."
    learned = ", and every learned parameter," if subject.parameters else ""
    said = f"Queries, keys and values{learned} get gradients"
    if late:
        said += f" ({', '.join(late)} only once training has moved it)"
    if left < 1e-3:
        return f"{said}; where scores are 10⁵ times as large the weights saturate, and next to nothing of it is left."
    return f"{said}."


def named(name: str, dead: list[str], broken: list[str]) -> str:
    """Mark a part whose gradient is missing or no number."""
    return "none" if name in dead else "not finite" if name in broken else ""


def word(name: str) -> str:
    """Say an input's name in words."""
    return WORDS.get(name, f"parameter '{name}'")


def culprit(subject: Subject, names: list[str]) -> str:
    """Name the stages that let no gradient through."""
    mechanism = subject.mechanism
    stages = [str(item) for label, item in mechanism.labelled() if any(name.startswith(f"{label}_") for name in names)]
    if set(JUDGED) <= set(names) and mechanism.output:
        stages = [*map(str, mechanism.output), str(mechanism.weights), *stages]
    elif "v" in names:
        stages = [str(mechanism.weights), *map(str, mechanism.values), *stages]
    elif {"q", "k"} & set(names):
        stages = [str(mechanism.weights if score_passes(subject) else mechanism.score), *stages]
    return "the stage " + " or ".join(f"'{stage}'" for stage in dict.fromkeys(stages))


def score_passes(subject: Subject) -> bool:
    """Tell whether the scores themselves let a gradient through to queries and keys."""
    inputs = subject.inputs(1, LENGTH, torch.float64)
    q, k = inputs["q"].requires_grad_(), inputs["k"].requires_grad_()
    scores = subject.scores(q, k)
    found = torch.autograd.grad(scores.square().sum(), (q, k), allow_unused=True)
    return all(g is not None and peak(g) > 0 for g in found)
