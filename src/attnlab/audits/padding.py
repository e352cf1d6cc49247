"""Padding and batch invariance: outputs must not depend on padding, nor on other sequences in the batch.

What stands in the padding, how much of it there is, on which side, and which sequences share the batch may change no
output of a real token, and no gradient may reach the padding: beyond rounding, which is measured. What the reference
loses in fp32 beside fp64, on the same tokens, is what the stages' own arithmetic rounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart, worst
from .subject import ROUNDINGS, Inputs, Mode, Subject, largest, noise, peak

NAME = "padding and batch invariance"
REAL, PADDED = 133, 19
"""Real tokens, more than one tile; and padding, less than one."""

Side = Literal["right", "left"]

LOSSES = 16
"""How many times what the reference loses in fp32 a result may be off."""


@check(NAME, kind="padding")
def padding_invariance(subject: Subject) -> Finding:
    """Change padding and neighbours, and watch the real tokens."""
    parts: list[FindingPart] = []
    rounding = Rounding(subject)
    for dtype in (torch.float64, torch.float32):
        for mode in subject.modes(Mode(False, dtype=dtype, mask="keys")):
            parts += padded(subject, mode, rounding)
        for mode in subject.modes(Mode(False, dtype=dtype)):
            parts.append(in_company(subject, mode))
    # With more heads, three sequences are more than a kernel computes in one piece, and one is not.
    parts += [in_company(subject.split, mode) for mode in subject.modes()]
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


@dataclass(frozen=True)
class PaddingCase:
    """Padding tokens on one side of a sequence, ordinary or large."""

    side: Side
    is_large: bool

    def __str__(self) -> str:
        return f"{'large ' if self.is_large else ''}padding on the {self.side}"

    @property
    def here(self) -> slice:
        """Where the real tokens stand."""
        return slice(0, REAL) if self.side == "right" else slice(PADDED, PADDED + REAL)

    def around(self, subject: Subject, dtype: torch.dtype) -> Inputs:
        """Return the real tokens with the padding at their side."""
        real = subject.inputs(1, REAL, dtype)
        filler = subject.inputs(1, PADDED, dtype, salt=2 if self.is_large else 1)
        size, is_right = 1e3 if self.is_large else 1.0, self.side == "right"
        return {
            name: torch.cat([t, size * filler[name]] if is_right else [size * filler[name], t], 2)
            for name, t in real.items()
        }


PADDINGS = [PaddingCase(side, is_large) for side in get_args(Side) for is_large in (False, True)]


def padded(subject: Subject, mode: Mode, rounding: Rounding) -> Iterator[FindingPart]:
    """Compare the bare sequence with the same one padded, on either side and with other content."""
    alone = subject.attend(subject.inputs(1, REAL, mode.dtype), bare(subject, mode))
    for padding in PADDINGS:
        result, reached, scale = run_padded(subject, mode, padding)
        lost, lost_gradient = rounding.of(mode, padding)
        bound = noise(alone, ROUNDINGS[mode.dtype]) + lost
        note = "what stands in the padding" if padding.is_large else "how much padding there is"
        yield FindingPart(f"{padding}, {mode}", peak(result - alone), bound, note, mode.kernel)
        bound = ROUNDINGS[mode.dtype] * torch.finfo(mode.dtype).eps * scale + lost_gradient
        note = "the padding: a gradient reaches it"
        yield FindingPart(f"gradient to {padding}, {mode}", reached, bound, note, mode.kernel)


def run_padded(subject: Subject, mode: Mode, padding: PaddingCase) -> tuple[Tensor, float, float]:
    """Return the output of the real tokens, the largest gradient in the padding, and the largest in real tokens."""
    here = padding.here
    mask = torch.zeros(1, 1, 1, REAL + PADDED, dtype=torch.bool)
    mask[..., here] = True
    leaves = {name: t.requires_grad_() for name, t in padding.around(subject, mode.dtype).items()}
    # Positions count real tokens, so that a sentence is at the same ones wherever its padding stands.
    out = subject.attend(leaves, mode, mask, torch.arange(REAL + PADDED) - here.start)[:, :, here]
    reached, scale = gradients_in(leaves, out, here)
    return out.detach(), reached, scale


class Rounding:
    """What rounding may change in padded results: measured once for all kernels and precisions.

    It is the reference's loss in fp32, not the kernel's own: a fault of a kernel must not excuse itself.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.known: dict[tuple[bool, PaddingCase], tuple[float, float]] = {}

    def of(self, mode: Mode, padding: PaddingCase) -> tuple[float, float]:
        """Return how far an output and a gradient may be off in the mode's precision."""
        key = (mode.causal, padding)
        if key not in self.known:
            rough, exact = (
                run_padded(self.subject, dataclasses.replace(mode, kernel="reference", dtype=dtype), padding)
                for dtype in (torch.float32, torch.float64)
            )
            lost = peak(rough[0] - exact[0]), abs(rough[1] - exact[1])
            # What is no number is no rounding, and excuses nothing.
            self.known[key] = (lost[0] if math.isfinite(lost[0]) else 0.0, lost[1] if math.isfinite(lost[1]) else 0.0)
        finer = LOSSES * torch.finfo(mode.dtype).eps / torch.finfo(torch.float32).eps
        return finer * self.known[key][0], finer * self.known[key][1]


def bare(subject: Subject, mode: Mode) -> Mode:
    """Return the mode without padding, by the same kernel where it can do without."""
    plain = dataclasses.replace(mode, mask="none")
    able = mode.kernel in subject.kernels(REAL, plain)
    return plain if able else dataclasses.replace(plain, kernel="auto")


def gradients_in(leaves: Inputs, out: Tensor, here: slice) -> tuple[float, float]:
    """Return the largest gradient that reaches inputs outside the real tokens, and the largest that reaches any."""
    if not out.requires_grad:
        return 0.0, 0.0
    found = torch.autograd.grad(out.square().sum(), list(leaves.values()), allow_unused=True)
    sizes = [g.abs().amax((0, 1, 3)) for g in found if g is not None]
    is_padding = torch.ones(REAL + PADDED, dtype=torch.bool)
    is_padding[here] = False
    return largest(peak(size[is_padding]) for size in sizes), largest(peak(size[here]) for size in sizes)


def in_company(subject: Subject, mode: Mode) -> FindingPart:
    """Compare a sequence alone with the same one between two others, one of them large."""
    real, other = subject.inputs(1, REAL, mode.dtype), subject.inputs(1, REAL, mode.dtype, salt=3)
    alone = subject.attend(real, mode)
    batch = {name: torch.cat([other[name], t, 1e3 * other[name]]) for name, t in real.items()}
    together = subject.attend(batch, mode)[1:2]
    bound = noise(alone, ROUNDINGS[mode.dtype])
    said = f"neighbours of {subject.num_heads} heads, {mode}"
    return FindingPart(said, peak(together - alone), bound, "its neighbours in the batch", mode.kernel)
