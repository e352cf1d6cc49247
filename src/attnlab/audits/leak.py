"""Causal leak: does any output depend on a later token?

By gradient, ∂out_i/∂input_j must be exactly 0 for every j > i; by perturbation, outputs before a changed token may
change by rounding only. Both are tested for each input separately, with every kernel, with dropout and in bf16.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart, find_worst, show
from .subject import LONG, SHORT, Inputs, Mode, Subject, compute_gradients, disable_onednn, noise

NAME = "causal leak"
WORDS = {
    "q": "the query", "k": "the key", "v": "the value", "x": "the layer's input", "first": "the first layer's value",
}  # fmt: skip
LARGE, SMALL = 1e2, 1e-2
DROPOUT = 0.2

VERY_LONG = 2100
BORDERS = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, LONG - 1)
"""Positions at which the tiles and spans of kernels begin; everything from one of them on is changed at once."""


@dataclass(frozen=True)
class Leak:
    """The strongest dependence of an output on a later token: its size, its bound, the input and the positions."""

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
    """Search for outputs that depend on a later token."""
    if True not in subject.causalities:
        return None
    leaks: dict[FindingPart, Leak] = {}
    for trained, mode in _list_situations(subject):
        with disable_onednn() if mode.dtype == torch.bfloat16 else nullcontext():
            for method, leak in (
                ("gradient", _find_by_gradient(trained, mode)),
                ("change", _find_by_change(trained, mode)),
            ):
                is_moved = trained is not subject
                # Outside its range, a moved parameter may give NaN, which shows nothing.
                is_void = is_moved and leak.size != leak.size
                part = FindingPart(
                    f"{method}, {mode}" + (", parameters moved" if is_moved else ""), leak.size,
                    None if is_void else leak.bound, "void: the moved parameters give NaN" if is_void else leak.pair,
                    "" if is_moved else mode.kernel,
                )  # fmt: skip
                leaks[part] = leak
    bad = find_worst(leaks)
    leak = leaks[bad]
    return Finding(
        NAME, bad.passed, bad.figure, bad.bound, _explain(bad, leak, sum(part.bound is not None for part in leaks)),
        "" if bad.passed else subject.locate_fault(leaks, f"the stages of '{subject.mechanism}'; {leak.pair}"),
        parts=tuple(leaks), data={"map": _map_gradients(subject).tolist()},
    )  # fmt: skip


def _list_situations(subject: Subject) -> Iterator[tuple[Subject, Mode]]:
    """Yield the subject with every kernel, in training, in bf16 and with masks; then with parameters moved."""
    causal = dataclasses.replace(subject, causalities=(True,))
    ways = (
        Mode(True), Mode(True, dropout=DROPOUT, training=True), Mode(True, dtype=torch.bfloat16),
        Mode(True, mask="keys"), Mode(True, mask="pairs"),
    )  # fmt: skip
    for mode in causal.modes(*ways):
        yield subject, mode
    if subject.parameters:
        yield subject.move_parameters(), Mode(True, "auto")


def _list_lengths(mode: Mode) -> list[tuple[int, list[int]]]:
    """Return lengths of long sequences, and for each the positions from which on the future is changed."""
    lengths = [(LONG, list(BORDERS))]
    # A kernel that sums over spans of 2048 tokens needs a sequence of more than one.
    if mode.kernel == "linear" and mode.dtype == torch.float32 and mode.mask == "none":
        lengths.append((VERY_LONG, [2047, 2048, 2049]))
    return lengths


def _find_by_gradient(subject: Subject, mode: Mode) -> Leak:
    """Find the largest gradient of a later token: every pair of a short sequence, borders of a long one."""
    leaks = []
    for name, sizes in _measure_gradients(subject, mode, SHORT, list(range(SHORT)), one_row=True).items():
        leaks.append(_find_strongest(sizes.triu(1), 0.0, name))
    for length, starts in _list_lengths(mode):
        later = torch.arange(length) >= torch.tensor(starts)[:, None]
        for name, sizes in _measure_gradients(subject, mode, length, [t - 1 for t in starts], one_row=False).items():
            leak = _find_strongest(sizes.masked_fill(~later, 0), 0.0, name)
            leaks.append(dataclasses.replace(leak, query=starts[leak.query] - 1))
    return max(leaks, key=_get_severity)


def _find_by_change(subject: Subject, mode: Mode) -> Leak:
    """Change one token of a short sequence, or the whole future of a long one, and compare the outputs before it."""
    leaks = []
    for length, starts in [(SHORT, list(range(SHORT))), *_list_lengths(mode)]:
        position = torch.arange(length)
        start = torch.tensor(starts)[:, None]
        is_changed = position == start if length == SHORT else position >= start
        base = subject.inputs(1, length, mode.dtype)
        base = {name: t.expand(len(starts), -1, -1, -1) for name, t in base.items()}
        before = subject.attend(base, mode)
        for name in base:
            # At the borders of a long sequence it matters which tokens are visible, not how large a change is.
            for size in (LARGE, SMALL) if length == SHORT else (LARGE,):
                after = subject.attend(_change_input(base, name, is_changed, size), mode)
                change = (after - before).abs().double().amax((1, 3)).masked_fill(position >= start, 0)
                leak = _find_strongest(change, noise(before), name)
                # Row r of `change` belongs to the change that begins at starts[r], its columns are outputs.
                leaks.append(dataclasses.replace(leak, query=leak.key, key=starts[leak.query]))
    return max(leaks, key=_get_severity)


def _change_input(base: Inputs, name: str, is_changed: Tensor, size: float) -> Inputs:
    t = base[name]
    step = size * torch.randn(t.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(t.dtype)
    return {**base, name: torch.where(is_changed[:, None, :, None], t + step, t)}


def _measure_gradients(
    subject: Subject, mode: Mode, length: int, rows: list[int], *, one_row: bool
) -> dict[str, Tensor]:
    """Return how strongly outputs depend on each position, [rows length], for every input.

    Batch row r is about output rows[r] alone, or with one_row=False about all outputs up to it.
    """
    inputs = subject.inputs(1, length, mode.dtype)
    leaves = {name: t.repeat(len(rows), 1, 1, 1).requires_grad_() for name, t in inputs.items()}
    out = subject.attend(leaves, mode)
    position, row = torch.arange(length), torch.tensor(rows)[:, None]
    is_included = position == row if one_row else position <= row
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out.dtype)
    gradients = compute_gradients(out, leaves.values(), cotangent * is_included[:, None, :, None])
    return {name: g.abs().double().amax((1, 3)) for name, g in zip(leaves, gradients, strict=True)}


def _map_gradients(subject: Subject) -> Tensor:
    """Return how strongly output i depends on token j through any input, [n n]."""
    by_input = _measure_gradients(subject, Mode(True), SHORT, list(range(SHORT)), one_row=True)
    return torch.stack(list(by_input.values())).amax(0)


def _find_strongest(sizes: Tensor, bound: float, through: str) -> Leak:
    """Return the largest of a table of sizes with its position; NaN counts as infinite."""
    index = int(sizes.nan_to_num(nan=torch.inf).argmax())
    row, column = divmod(index, sizes.shape[1])
    return Leak(float(sizes.flatten()[index]), bound, through, row, column)


def _get_severity(leak: Leak) -> float:
    return torch.inf if leak.size != leak.size else leak.size - leak.bound


def _explain(bad: FindingPart, leak: Leak, num_trials: int) -> str:
    if bad.passed:
        return (
            f"No output depends on a later token: in {num_trials} trials over kernels, masks, dropout and precisions, "
            "gradients were exactly 0 and outputs changed by rounding only."
        )
    if leak.size != leak.size:
        return f"The dependence between {leak.pair} is NaN, so it is unknown what the output depends on."
    return (
        f"It sees the future: output {leak.query} changes with {WORDS[leak.through]} of token {leak.key} by "
        f"{bad.figure:.2g} (allowed {show(bad.bound)}), so its training loss will look better than it can be in use."
    )
