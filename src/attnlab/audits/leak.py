"""Causal leak: does any output depend on a later token?

By gradient, ∂out_i/∂input_j must be exactly 0 for every j > i; by perturbation, outputs before a changed token may
move by rounding alone. Both are asked through every input apart, every kernel, with dropout and without, and in bf16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart, show, worst
from .subject import LONG, SHORT, Inputs, Mode, Subject, noise, without_onednn

NAME = "causal leak"
WORDS = {
    "q": "the query", "k": "the key", "v": "the value", "x": "the layer's input", "first": "the first layer's value",
}  # fmt: skip
LARGE, SMALL = 1e2, 1e-2
DROPOUT = 0.2

VERY_LONG = 2100
BORDERS = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, LONG - 1)
"""Where the tiles and spans of kernels begin: first positions of a future that is looked at as a whole."""


@dataclass(frozen=True)
class Leak:
    """The strongest dependence on the future that was found: its size, what may be, and from where to where."""

    size: float
    bound: float
    through: str
    query: int
    key: int

    @property
    def pair(self) -> str:
        """The pair of positions in words."""
        return f"output {self.query} and {WORDS[self.through]} of token {self.key}"


@check(NAME, kind="leak")
def causal_leak(subject: Subject) -> Finding | None:
    """Look for any output that depends on a later token."""
    if True not in subject.causalities:
        return None
    found: list[tuple[FindingPart, Leak]] = []
    for owner, mode in situations(subject):
        with without_onednn() if mode.dtype == torch.bfloat16 else nullcontext():
            for what, leak in (("gradient", by_gradient(owner, mode)), ("change", by_change(owner, mode))):
                said = f"{what}, {mode}" + ("" if owner is subject else ", parameters moved")
                # A parameter may have a range of its own, beyond which moving it proves nothing.
                is_void = owner is not subject and leak.size != leak.size
                note = "void: the moved parameters make no numbers" if is_void else leak.pair
                kernel = mode.kernel if owner is subject else ""
                found.append((FindingPart(said, leak.size, None if is_void else leak.bound, note, kernel), leak))
    parts = tuple(part for part, _ in found)
    bad = worst(parts)
    leak = dict(found)[bad]
    return Finding(
        NAME, bad.passed, bad.figure, bad.bound, sentence(bad, leak, parts),
        "" if bad.passed else subject.blame(parts, f"the stages of '{subject.mechanism}'; {leak.pair}"),
        parts=parts, data={"map": gradient_map(subject, Mode(True), SHORT).tolist()},
    )  # fmt: skip


def situations(subject: Subject) -> Iterator[tuple[Subject, Mode]]:
    """Yield how the question is put: to each kernel, as in training, in bf16, under masks; with parameters moved."""
    causal = dataclasses.replace(subject, causalities=(True,))
    ways = (
        Mode(True),
        Mode(True, dropout=DROPOUT, training=True),
        Mode(True, dtype=torch.bfloat16),
        Mode(True, mask="keys"),
        Mode(True, mask="pairs"),
    )
    for mode in causal.modes(*ways):
        yield subject, mode
    if subject.parameters:
        yield subject.moved(), Mode(True, "auto")


def lengths(subject: Subject, mode: Mode) -> list[tuple[int, list[int]]]:
    """Return the lengths of sequences, and where the future begins that is looked at as a whole in each.

    A kernel that sums over spans of 2048 tokens needs a sequence of more than one.
    """
    wanted = [(LONG, list(BORDERS))]
    if mode.kernel == "linear" and mode.dtype == torch.float32 and mode.mask == "none":
        wanted.append((VERY_LONG, [2047, 2048, 2049]))
    return wanted


def by_gradient(subject: Subject, mode: Mode) -> Leak:
    """Find the largest gradient that reaches a later token: every pair of a short sequence, borders of a long one."""
    leaks = []
    for name, sizes in gradients(subject, mode, SHORT, list(range(SHORT)), one_row=True).items():
        later = torch.ones(SHORT, SHORT, dtype=torch.bool).triu(1)
        leaks.append(strongest(sizes.masked_fill(~later, 0), 0.0, name))
    for length, starts in lengths(subject, mode):
        later = torch.arange(length) >= torch.tensor(starts)[:, None]
        for name, sizes in gradients(subject, mode, length, [t - 1 for t in starts], one_row=False).items():
            found = strongest(sizes.masked_fill(~later, 0), 0.0, name)
            leaks.append(dataclasses.replace(found, query=starts[found.query] - 1))
    return max(leaks, key=severity)


def by_change(subject: Subject, mode: Mode) -> Leak:
    """Change one token of a short sequence, or the whole future of a long one, and watch the outputs before it."""
    leaks = []
    for length, starts in [(SHORT, list(range(SHORT))), *lengths(subject, mode)]:
        position = torch.arange(length)
        start = torch.tensor(starts)[:, None]
        touched = position == start if length == SHORT else position >= start
        base = subject.inputs(1, length, mode.dtype)
        base = {name: t.expand(len(starts), -1, -1, -1) for name, t in base.items()}
        before = subject.attend(base, mode)
        for name in base:
            # Small changes go to every pair; the borders of a long sequence are about what is seen, not how much.
            for size in (LARGE, SMALL) if length == SHORT else (LARGE,):
                after = subject.attend(changed(base, name, touched, size), mode)
                moved = (after - before).abs().double().amax((1, 3)).masked_fill(position >= start, 0)
                leaks.append(located(moved, noise(before), name, starts))
    return max(leaks, key=severity)


def located(moved: Tensor, bound: float, name: str, starts: list[int]) -> Leak:
    """Return the output that moved the most; row r of `moved` belongs to the change that began at starts[r]."""
    found = strongest(moved, bound, name)
    return dataclasses.replace(found, query=found.key, key=starts[found.query])


def changed(base: Inputs, name: str, touched: Tensor, size: float) -> Inputs:
    """Return the inputs with one of them changed at the touched positions, [b n]."""
    t = base[name]
    step = size * torch.randn(t.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(t.dtype)
    return {**base, name: torch.where(touched[:, None, :, None], t + step, t)}


def gradients(subject: Subject, mode: Mode, length: int, rows: list[int], *, one_row: bool) -> dict[str, Tensor]:
    """Return how strongly outputs depend on each position, [rows length], for every input.

    Batch row r looks at output rows[r] alone, or with one_row=False at all up to it.
    """
    inputs = subject.inputs(1, length, mode.dtype)
    leaves = {name: t.repeat(len(rows), 1, 1, 1).requires_grad_() for name, t in inputs.items()}
    out = subject.attend(leaves, mode)
    position, row = torch.arange(length), torch.tensor(rows)[:, None]
    looked = position == row if one_row else position <= row
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out.dtype)
    cotangent = cotangent * looked[:, None, :, None]
    got = torch.autograd.grad(out, list(leaves.values()), cotangent, allow_unused=True)
    empty = torch.zeros(len(rows), length, dtype=torch.float64)
    return {name: empty if g is None else g.abs().double().amax((1, 3)) for name, g in zip(leaves, got, strict=True)}


def gradient_map(subject: Subject, mode: Mode, length: int) -> Tensor:
    """Return how strongly output i depends on token j through any input, [n n]."""
    by_input = gradients(subject, mode, length, list(range(length)), one_row=True)
    return torch.stack(list(by_input.values())).amax(0)


def strongest(sizes: Tensor, bound: float, through: str) -> Leak:
    """Return the largest of a table of sizes and where it stands; what is not a number is larger than any."""
    spot = int(sizes.nan_to_num(nan=torch.inf).argmax())
    row, column = divmod(spot, sizes.shape[1])
    return Leak(float(sizes.flatten()[spot]), bound, through, row, column)


def severity(leak: Leak) -> float:
    """Order leaks by how far they are beyond what may be."""
    return torch.inf if leak.size != leak.size else leak.size - leak.bound


def sentence(bad: FindingPart, leak: Leak, parts: tuple[FindingPart, ...]) -> str:
    """Explain the finding to a student."""
    if bad.passed:
        return (
            f"No output depends on a later token: {sum(part.bound is not None for part in parts)} trials over kernels, "
            "masks, dropout and precisions found gradients of exactly 0 and changes of rounding alone."
        )
    if leak.size != leak.size:
        return f"The dependence between {leak.pair} is not a number, so nobody can say what it sees."
    return (
        f"It sees the future: output {leak.query} changes with {WORDS[leak.through]} of token {leak.key} by "
        f"{bad.figure:.2g} (allowed {show(bad.bound)}), so its training loss will look better than it can be in use."
    )
