"""Numerics: rows that see nothing, scores of ±10⁵, half precision, and gradients that are the derivative.

A row that may see nothing gives zeros and zero gradients. Scores of 10⁵, and ordinary ones in fp16 and bf16, give
finite numbers. The gradients equal finite differences, unless a stage says that it passes another's.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor
from torch.autograd import gradcheck

from .check import check
from .finding import Finding, FindingPart, worst
from .subject import LONG, Inputs, Mode, Subject, largest, peak, without_onednn

NAME = "numerics"
LARGE = 1e5
TINY = 5


@check(NAME, kind="numerics")
def numerics(subject: Subject) -> Finding:
    """Look for NaN, overflow and wrong derivatives."""
    parts: list[FindingPart] = []
    # What an output stage adds is its own; nothing to see must give nothing before it.
    inner = subject.stripped(output=())
    parts += [blind(inner, mode) for mode in inner.modes(Mode(False, mask="keys"), Mode(False, mask="pairs"))]
    for mode in subject.modes():
        parts += [large(subject, mode), alike(subject, mode)]
    with without_onednn():
        for dtype in (torch.float16, torch.bfloat16):
            parts += [half(subject, mode) for mode in subject.modes(Mode(False, dtype=dtype))]
            parts.append(overflow(subject, dtype))
    parts += [derivative(subject, mode) for mode in subject.modes(Mode(False, dtype=torch.float64))]
    bad = worst(parts)
    said = bad.note if not bad.passed else (
        "Rows that see nothing give zeros, scores of ±10⁵ and half precision give finite numbers, and the gradients "
        + ("are another stage's by design." if is_straight_through(subject) else "are the derivatives.")
    )  # fmt: skip
    where = "" if bad.passed else subject.blame(parts, bad.name)
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=tuple(parts))


def blind(subject: Subject, mode: Mode) -> FindingPart:
    """Measure what a row that may see nothing gives, and what reaches the inputs from it."""
    kind = mode.mask
    leaves = {name: t.requires_grad_() for name, t in subject.inputs(2, LONG).items()}
    mask = torch.ones(2, 1, 1 if kind == "keys" else LONG, LONG, dtype=torch.bool)
    rows = slice(None) if kind == "keys" else slice(3, None, 7)
    mask[1, :, rows if kind == "pairs" else slice(None)] = False
    out = subject.attend(leaves, mode, mask)
    dark = out[1, :, rows]
    found = [peak(dark), *(peak(g[1]) for g in gradients_of(leaves, dark)), *(nan_size(g) for g in [out])]
    note = "A row that may see nothing must give zeros and zero gradients, and this one does not."
    return FindingPart(f"nothing to see, {mode}", largest(found), 0.0, note, mode.kernel)


def large(subject: Subject, mode: Mode) -> FindingPart:
    """Count the numbers that are not finite where scores reach ±10⁵."""
    leaves = scaled(subject.inputs(2, LONG, mode.dtype), LARGE**0.5)
    out = subject.attend(leaves, mode)
    bad = sum(count_broken(t) for t in (out, *gradients_of(leaves, out)))
    note = "Scores of ±10⁵ make numbers that are not finite: one bad batch would end a training run."
    return FindingPart(f"scores of ±1e5, {mode}", float(bad), 0.0, note, mode.kernel)


def alike(subject: Subject, mode: Mode) -> FindingPart:
    """Count the numbers that are not finite where a query is its key, as share(qk) makes it, and some tokens are 0."""
    inputs = subject.inputs(2, LONG, mode.dtype)
    inputs = {name: t.index_fill(2, torch.tensor([0, 5]), 0) for name, t in inputs.items()}
    leaves = scaled({**inputs, "k": inputs["q"].clone()}, 1.0)
    out = subject.attend(leaves, mode)
    bad = sum(count_broken(t) for t in (out, *gradients_of(leaves, out)))
    note = "A query that equals its key, or a token of zeros, makes numbers that are not finite."
    return FindingPart(f"queries that are keys, and zeros, {mode}", float(bad), 0.0, note, mode.kernel)


def half(subject: Subject, mode: Mode) -> FindingPart:
    """Count the numbers that are not finite in half precision on ordinary inputs."""
    leaves = scaled(subject.inputs(2, LONG, mode.dtype), 1.0)
    out = subject.attend(leaves, mode)
    bad = sum(count_broken(t) for t in (out, *gradients_of(leaves, out)))
    note = f"Ordinary inputs make numbers that are not finite in {str(mode.dtype).removeprefix('torch.')}."
    return FindingPart(f"half precision, {mode}", float(bad), 0.0, note, mode.kernel)


def overflow(subject: Subject, dtype: torch.dtype) -> FindingPart:
    """Report the share of outputs that overflow in half precision where scores reach ±10⁵."""
    inputs = {name: t * LARGE**0.5 if name in ("q", "k") else t for name, t in subject.inputs(2, LONG, dtype).items()}
    out = subject.attend(inputs, Mode(subject.causalities[-1], dtype=dtype))
    return FindingPart(
        f"outputs lost in {str(dtype).removeprefix('torch.')} at scores of ±1e5", count_broken(out) / out.numel()
    )


def derivative(subject: Subject, mode: Mode) -> FindingPart:
    """Compare the gradients with finite differences."""
    inputs = subject.inputs(1, TINY, torch.float64)
    learned = {name: p.double() for name, p in subject.parameters.items()}

    def run(*tensors: Tensor) -> Tensor:
        given = dict(zip([*inputs, *learned], tensors, strict=True))
        asked = dataclasses.replace(subject, parameters={name: given[name] for name in learned})
        return asked.attend({name: given[name] for name in inputs}, mode)

    tensors = tuple(t.requires_grad_() for t in (*inputs.values(), *learned.values()))
    agrees = gradcheck(run, tensors, raise_exception=False, fast_mode=True, check_undefined_grad=False)
    note = "The gradient is not the derivative of the output, by finite differences."
    return FindingPart(
        f"gradcheck, {mode}", float(not agrees), None if is_straight_through(subject) else 0.0, note, mode.kernel
    )


def is_straight_through(subject: Subject) -> bool:
    """Tell whether the weights say that their gradient is another stage's."""
    return bool(getattr(subject.mechanism.weights, "straight_through", False))


def scaled(inputs: Inputs, factor: float) -> Inputs:
    """Return queries and keys as many times as large, all as leaves."""
    return {name: (t * factor if name in ("q", "k") else t).detach().requires_grad_() for name, t in inputs.items()}


def gradients_of(leaves: Inputs, out: Tensor) -> list[Tensor]:
    """Return the gradients that reach the inputs from the sum of some outputs."""
    if not out.requires_grad:
        return []
    found = torch.autograd.grad(out.sum(), list(leaves.values()), allow_unused=True)
    return [g for g in found if g is not None]


def count_broken(tensor: Tensor) -> int:
    """Count the numbers that are not finite."""
    return int((~tensor.isfinite()).sum())


def nan_size(tensor: Tensor) -> float:
    """Return infinity where any number of a tensor is not finite, else 0."""
    return torch.inf if count_broken(tensor) else 0.0
