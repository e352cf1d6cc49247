"""Padding and batch invariance: padding is nothing, and a sequence's neighbours in the batch are none of its business.

What stands in the padding, how much of it there is, on which side, and which sequences share the batch may change no
output of a real token, and no gradient may reach the padding.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor

from .check import check
from .finding import Finding, Part, worst
from .subject import ROUNDINGS, Inputs, Mode, Subject, largest, noise, peak

NAME = "padding and batch invariance"
REAL, PADDED = 133, 19
"""Real tokens, more than one tile; and padding, less than one."""


@check(NAME)
def padding_invariance(subject: Subject) -> Finding:
    """Change padding and neighbours, and watch the real tokens."""
    parts: list[Part] = []
    for dtype in (torch.float64, torch.float32):
        for mode in subject.modes(Mode(False, dtype=dtype, mask="keys")):
            parts += padded(subject, mode)
        for mode in subject.modes(Mode(False, dtype=dtype)):
            parts.append(in_company(subject, mode))
    bad = worst(parts)
    if bad.passed:
        said = "Neither padding, its content, side and amount, nor other sequences of the batch change a real token."
    elif not math.isfinite(bad.figure):
        said = f"A real token's result is not a number, changed by {bad.note}."
    else:
        said = (
            f"A real token's result depends on {bad.note} ({bad.figure:.2g}, allowed {bad.bound:.2g}): the same "
            "sentence would score differently in another batch."
        )
    where = "" if bad.passed else subject.blame(parts, f"{bad.name}: what the stages compute over all tokens")
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=tuple(parts))


def padded(subject: Subject, mode: Mode) -> list[Part]:
    """Compare the bare sequence with the same one padded, on either side and with other content."""
    real = subject.inputs(1, REAL, mode.dtype)
    alone = subject.attend(real, bare(subject, mode))
    bound = noise(alone, ROUNDINGS[mode.dtype])
    amount = content = reached = 0.0
    for side in ("right", "left"):
        here = slice(0, REAL) if side == "right" else slice(PADDED, PADDED + REAL)
        mask = torch.zeros(1, 1, 1, REAL + PADDED, dtype=torch.bool)
        mask[..., here] = True
        for number, size in enumerate((1.0, 1e3)):
            whole = joined(real, subject.inputs(1, PADDED, mode.dtype, salt=1 + number), side, size)
            leaves = {name: t.requires_grad_() for name, t in whole.items()}
            out = subject.attend(leaves, mode, mask)[:, :, here]
            difference = peak(out - alone)
            if number == 0:
                amount = largest([amount, difference])
            else:
                content = largest([content, difference])
            reached = largest([reached, gradient_in(leaves, out, here)])
    return [
        Part(f"amount, {mode}", amount, bound, "how much padding there is", mode.kernel),
        Part(f"content, {mode}", content, bound, "what stands in the padding", mode.kernel),
        Part(f"gradient, {mode}", reached, 0.0, "the padding: a gradient reaches it", mode.kernel),
    ]


def bare(subject: Subject, mode: Mode) -> Mode:
    """Return the mode without padding, by the same kernel where it can do without."""
    plain = dataclasses.replace(mode, mask="none")
    able = mode.kernel in subject.kernels(REAL, plain)
    return plain if able else dataclasses.replace(plain, kernel="auto")


def joined(real: Inputs, padding: Inputs, side: str, size: float) -> Inputs:
    """Put padding to the right or left of real tokens."""
    return {
        name: torch.cat([t, size * padding[name]] if side == "right" else [size * padding[name], t], 2)
        for name, t in real.items()
    }


def gradient_in(leaves: Inputs, out: Tensor, here: slice) -> float:
    """Return the largest gradient that reaches keys or values outside the real tokens."""
    if not out.requires_grad:
        return 0.0
    found = torch.autograd.grad(out.square().sum(), list(leaves.values()), allow_unused=True)
    sizes = [g.abs().amax((0, 1, 3)) for g in found if g is not None]
    is_padding = torch.ones(REAL + PADDED, dtype=torch.bool)
    is_padding[here] = False
    return largest(peak(size[is_padding]) for size in sizes)


def in_company(subject: Subject, mode: Mode) -> Part:
    """Compare a sequence alone with the same one between two others, one of them large."""
    real, other = subject.inputs(1, REAL, mode.dtype), subject.inputs(1, REAL, mode.dtype, salt=3)
    alone = subject.attend(real, mode)
    batch = {name: torch.cat([other[name], t, 1e3 * other[name]]) for name, t in real.items()}
    together = subject.attend(batch, mode)[1:2]
    apart = peak(together - alone)
    return Part(
        f"neighbours, {mode}", apart, noise(alone, ROUNDINGS[mode.dtype]), "its neighbours in the batch", mode.kernel
    )
