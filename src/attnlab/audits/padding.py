"""Padding and batch invariance: outputs must not depend on padding, nor on other sequences in the batch.

The content, amount and side of padding and the other sequences must not change an output of a real token, and padding
must get no gradient, except for rounding. The rounding of the stages is measured: it is the difference of the reference
between fp32 and fp64 on the same tokens.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart, judge_parts
from .stage_faults import (
    find_stage_of_blocks,
    find_stage_of_hidden_keys,
    find_stage_of_hidden_tokens,
    find_stage_of_tokens,
    locate_fault,
)
from .subject import MANY_HEADS, ROUNDINGS, Inputs, Mode, Subject, compute_gradients, largest, peak, tolerance

NAME = "padding and batch invariance"
REAL, PADDED = 133, 19
"""Real tokens, more than one tile; and padding, less than one."""

LARGE, SMALLER = 1e3, (1e2, 1e1, 1.0)
"""The size of large padding and of a large neighbour, and smaller ones at which moved parameters do not overflow."""

LOSSES = 16
"""How many times the fp32 error of the reference a result may be off by."""


@check(NAME, kind="padding", moves_parameters=True)
def padding_invariance(subject: Subject) -> Finding:
    """Change padding and other sequences, and compare the outputs of real tokens."""
    parts: list[FindingPart] = []
    large = _choose_size(subject)
    cases = [PaddingCase(side, size) for side in ("right", "left") for size in dict.fromkeys((1.0, large))]
    rounding = {
        (causal, case): _measure_rounding(subject, causal, case) for causal in subject.causalities for case in cases
    }
    for dtype in (torch.float64, torch.float32):
        for mode in subject.modes(Mode(False, dtype=dtype, mask="keys")):
            parts += _compare_padded(subject, mode, rounding)
        parts += [_compare_in_batch(subject, mode, large) for mode in subject.modes(Mode(False, dtype=dtype))]
    # With more heads, kernels split three sequences, but not one.
    parts += [_compare_in_batch(subject.resize(num_heads=MANY_HEADS), mode, large) for mode in subject.modes()]
    return judge_parts(
        NAME, parts,
        passed="Neither padding, its content, side and amount, nor other sequences of the batch change a real token.",
        failed=explain_difference,
        where=lambda bad: find_stage_of_blocks(subject)
        or find_stage_of_hidden_keys(subject)
        or find_stage_of_tokens(subject.mechanism)
        or locate_fault(
            subject, parts,
            find_stage_of_hidden_tokens(subject)
            or f"what '{subject.mechanism}' computes over all tokens (test: {bad.name})",
        ),
    )  # fmt: skip


def explain_difference(bad: FindingPart) -> str:
    """Explain why the outputs of real tokens must not depend on what a part has changed."""
    if not math.isfinite(bad.figure):
        return f"A real token's output is not a number, changed by {bad.note}: NaN from rows of padding spreads."
    return (
        f"A real token's output depends on {bad.note} ({bad.figure:.2g}, allowed {bad.bound:.2g}): the same "
        "sentence would score differently in another batch."
    )


@dataclass(frozen=True)
class PaddingCase:
    """Padding tokens on one side of a sequence, and their size: 1 is ordinary."""

    side: str
    size: float

    @property
    def is_large(self) -> bool:
        """Whether the padding tests its content, not its amount."""
        return self.size > 1

    def __str__(self) -> str:
        return f"{'large ' if self.is_large else ''}padding on the {self.side}"

    @property
    def real(self) -> slice:
        """The positions of the real tokens."""
        return slice(0, REAL) if self.side == "right" else slice(PADDED, PADDED + REAL)

    def pad(self, subject: Subject, dtype: torch.dtype) -> Inputs:
        """Return the real tokens with the padding on its side."""
        real = subject.inputs(1, REAL, dtype)
        filler = subject.inputs(1, PADDED, dtype, salt=2 if self.is_large else 1)
        pieces = {name: (t, self.size * filler[name]) for name, t in real.items()}
        return {name: torch.cat(pair if self.side == "right" else pair[::-1], 2) for name, pair in pieces.items()}


Rounding = Mapping[tuple[bool, PaddingCase], list[float]]


def _choose_size(subject: Subject) -> float:
    """Return the size of large padding: smaller if moved parameters, unlike initial ones, overflow at such tokens."""
    if not subject.is_moved or _is_finite(subject, LARGE) or not _is_finite(subject.restore_parameters(), LARGE):
        return LARGE
    return next((size for size in SMALLER if _is_finite(subject, size)), SMALLER[-1])


def _is_finite(subject: Subject, size: float) -> bool:
    """Tell whether tokens of a size, none of them padding, give finite outputs and gradients."""
    for causal in subject.causalities:
        leaves = {name: (size * t).requires_grad_() for name, t in subject.inputs(1, REAL, salt=2).items()}
        out = subject.attend(leaves, Mode(causal, "reference"))
        if not all(bool(t.isfinite().all()) for t in (out, *compute_gradients(out.square().sum(), leaves.values()))):
            return False
    return True


def _measure_rounding(subject: Subject, causal: bool, case: PaddingCase) -> list[float]:
    """Return the fp32 error of the reference's output and gradient, so that a kernel cannot raise its own bound."""
    rounded, exact = (
        _run_padded(subject, Mode(causal, "reference", dtype, "keys"), case) for dtype in (torch.float32, torch.float64)
    )
    errors = peak(rounded[0] - exact[0]), abs(rounded[1] - exact[1])
    # NaN and infinity are not rounding, and allow nothing.
    return [error if math.isfinite(error) else 0.0 for error in errors]


def _compare_padded(subject: Subject, mode: Mode, rounding: Rounding) -> Iterator[FindingPart]:
    """Compare a sequence alone with the same one padded, on either side and with different content."""
    plain = dataclasses.replace(mode, mask="none")
    if mode.kernel not in subject.list_kernels(REAL, plain):
        plain = dataclasses.replace(plain, kernel="auto")
    alone = subject.attend(subject.inputs(1, REAL, mode.dtype), plain)
    for case in dict.fromkeys(case for _, case in rounding):
        result, gradient, scale = _run_padded(subject, mode, case)
        factor = LOSSES * torch.finfo(mode.dtype).eps / torch.finfo(torch.float32).eps
        allowed, allowed_gradient = (factor * error for error in rounding[mode.causal, case])
        bound = tolerance(alone) + allowed
        note = "the content of the padding" if case.is_large else "how much padding there is"
        yield FindingPart(f"{case}, {mode}", peak(result - alone), bound, note, mode.kernel)
        bound = ROUNDINGS[mode.dtype] * torch.finfo(mode.dtype).eps * scale + allowed_gradient
        note = "the padding: a gradient reaches it"
        yield FindingPart(f"gradient to {case}, {mode}", gradient, bound, note, mode.kernel)


def _run_padded(subject: Subject, mode: Mode, case: PaddingCase) -> tuple[Tensor, float, float]:
    """Return the output of the real tokens, the largest gradient of the padding, and the largest of real tokens."""
    real = case.real
    is_real = torch.zeros(REAL + PADDED, dtype=torch.bool)
    is_real[real] = True
    leaves = {name: t.requires_grad_() for name, t in case.pad(subject, mode.dtype).items()}
    # Positions count real tokens, so that they do not depend on the side of the padding.
    out = subject.attend(leaves, mode, is_real[None, None, None], torch.arange(REAL + PADDED) - real.start)[:, :, real]
    sizes = [g.abs().amax((0, 1, 3)) for g in compute_gradients(out.square().sum(), leaves.values())]
    return out.detach(), largest(peak(size[~is_real]) for size in sizes), largest(peak(size[real]) for size in sizes)


def _compare_in_batch(subject: Subject, mode: Mode, large: float) -> FindingPart:
    """Compare a sequence alone with the same one between two others, one of them large."""
    real, other = subject.inputs(1, REAL, mode.dtype), subject.inputs(1, REAL, mode.dtype, salt=3)
    alone = subject.attend(real, mode)
    batch = {name: torch.cat([other[name], t, large * other[name]]) for name, t in real.items()}
    difference = peak(subject.attend(batch, mode)[1:2] - alone)
    name = f"neighbours of {subject.num_heads} heads, {mode}"
    return FindingPart(name, difference, tolerance(alone), "its neighbours in the batch", mode.kernel)
