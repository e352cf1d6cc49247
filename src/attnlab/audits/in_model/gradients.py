"""Gradient flow in a model: does every parameter that is to be trained get a gradient?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..check import check
from ..finding import Finding, FindingPart
from ..subject import peak
from .subject import ModelSubject

NAME = "gradient flow"
FAINT = 1e-7
"""The share of the median gradient below which one is rounding."""


@check(NAME, kind="gradients", on="model")
def gradient_flow(subject: ModelSubject) -> Finding:
    """Look for parameters that get no gradient, or one that is no number."""
    subject = subject.precise
    trained = {name: p for name, p in subject.model.named_parameters() if p.requires_grad}
    if not trained:
        return Finding(NAME, False, 0.0, None, "No parameter of the model is to be trained.", "requires_grad")
    tokens = subject.tokens(2)
    with subject.mode(False):
        loss = total(subject.run(tokens))
        found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
    sizes = {
        piece: size
        for name, g in zip(trained, found, strict=True)
        for piece, size in (pieces(name, g) if g is not None else [(name, 0.0)])
    }
    dead = [name for name, size in sizes.items() if size == 0]
    broken = [name for name, size in sizes.items() if not size < torch.inf]
    median = sorted(sizes.values())[len(sizes) // 2]
    faint = [name for name, size in sizes.items() if 0 < size < FAINT * median]
    parts = tuple(FindingPart(f"gradient to {name}", size) for name, size in sizes.items())
    passed = not dead and not broken
    return Finding(
        NAME, passed, float(len(dead) + len(broken)), 0.0, sentence(sizes, dead, broken, faint),
        "" if passed else ", ".join((dead or broken)[:8]), parts=parts, data={"none": dead, "faint": faint},
    )  # fmt: skip


def total(output: Any) -> Tensor:
    """Return a number that every part of a model's output enters, each with weights of its own."""
    draw = torch.Generator().manual_seed(5)
    terms = [
        (value * torch.randn(value.shape, generator=draw).to(value)).sum()
        for value in output.values()
        if isinstance(value, Tensor) and value.is_floating_point() and value.requires_grad
    ]
    return torch.stack([term.float() for term in terms]).sum()


def pieces(name: str, gradient: Tensor) -> list[tuple[str, float]]:
    """Return the largest gradient of a parameter, in thirds where queries, keys and values may be fused in it."""
    shape = gradient.shape
    if len(shape) != 2 or max(shape) != 3 * min(shape):
        return [(name, peak(gradient))]
    thirds = gradient.chunk(3, dim=0 if shape[0] > shape[1] else 1)
    return [(f"{name} ({which} third)", peak(t)) for which, t in zip(("first", "second", "last"), thirds, strict=True)]


def sentence(sizes: dict[str, float], dead: list[str], broken: list[str], faint: list[str]) -> str:
    """Explain the finding to a student."""
    if dead:
        return f"Training cannot change {listed(dead)}: nothing the model answers depends on it smoothly."
    if broken:
        return f"The gradient to {listed(broken)} is not a finite number."
    said = f"All {len(sizes)} parameters that are to be trained get a gradient"
    if faint:
        return f"{said}; to {listed(faint)} it is rounding alone (softmax ignores what all keys have in common)."
    return f"{said}."


def listed(names: list[str]) -> str:
    """Name a few parameters, and count the others."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
