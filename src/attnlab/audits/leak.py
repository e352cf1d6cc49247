"""Causal leak: does any output depend on a later token?

By gradient, ∂out_i/∂input_j must be exactly 0 for every j > i; by perturbation, outputs before a changed token may
change by rounding only. Both are tested for each input separately, with every kernel, with dropout and in bf16.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import nullcontext

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart, find_worst, judge_parts, show
from .stage_faults import find_stage_of_hidden_tokens, find_stage_of_tokens, locate_fault
from .subject import LONG, SHORT, Mode, Subject, compute_gradients, disable_onednn, find_largest, noise

NAME = "causal leak"
WORDS = {
    "q": "the query", "k": "the key", "v": "the value", "x": "the layer's input", "first": "the first layer's value",
}  # fmt: skip
LARGE, SMALL = 1e2, 1e-2
DROPOUT = 0.2

CANCELLED = 8
"""How many roundings at the size of the largest gradient may be left of later tokens that cancel."""

VERY_LONG = 2100
BORDERS = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, LONG - 1)
"""Positions around kernel tile boundaries; all tokens from such a position on are perturbed together."""


@check(NAME, kind="leak", moves_parameters=True)
def causal_leak(subject: Subject) -> Finding | None:
    """Search for outputs that depend on a later token."""
    if True not in subject.causalities:
        return None
    parts: list[FindingPart] = []
    precisions: dict[str, torch.dtype] = {}
    for mode in _list_situations(subject):
        with disable_onednn() if mode.dtype == torch.bfloat16 else nullcontext():
            leaks = {"gradient": _find_by_gradient(subject, mode), "change": _find_by_change(subject, mode)}
        precisions |= {f"{method}, {mode}": mode.dtype for method in leaks}
        parts += [
            dataclasses.replace(leak, name=f"{method}, {mode}", kernel=mode.kernel) for method, leak in leaks.items()
        ]
    by_input = _measure_gradients(subject, Mode(True), SHORT, list(range(SHORT)), one_row=True)
    num_trials = sum(part.bound is not None for part in parts)
    return judge_parts(
        NAME, parts,
        passed=(
            f"No output depends on a later token: in {num_trials} trials over kernels, masks, dropout and precisions, "
            "gradients were exactly 0 and outputs changed by rounding only."
        ),
        failed=lambda bad: _describe_leak(bad, _cancels(subject, parts, precisions)),
        where=lambda bad: (
            f"the stages of '{subject.mechanism}' overflow"
            if math.isnan(bad.figure)
            else find_stage_of_tokens(subject.mechanism)
            or locate_fault(
                subject, parts,
                find_stage_of_hidden_tokens(subject) or f"the stages of '{subject.mechanism}'; {bad.note}",
            )
        ),
        data={"map": torch.stack(list(by_input.values())).amax(0).tolist()},
    )  # fmt: skip


def is_rounding(leak: float, largest: float, dtype: torch.dtype) -> bool:
    """Tell whether the gradient of a later token is rounding beside the largest gradient."""
    return leak <= CANCELLED * torch.finfo(dtype).eps * largest


def _cancels(subject: Subject, parts: list[FindingPart], precisions: Mapping[str, torch.dtype]) -> bool:
    """Tell whether later tokens are read and cancel: they change no output, and their gradient is rounding, in fp64
    too."""
    failed = [part for part in parts if not part.passed]
    if any(not part.name.startswith("gradient") for part in failed):
        return False
    exact = Mode(True, "reference", torch.float64)
    tables = _measure_gradients(subject, exact, SHORT, list(range(SHORT)), one_row=True).values()
    largest, leak = (max(float(t.max()) for t in each) for each in (tables, [table.triu(1) for table in tables]))
    return is_rounding(leak, largest, torch.float64) and all(
        is_rounding(part.figure, largest, precisions[part.name]) for part in failed
    )


def describe_cancelling(bad: FindingPart, what: str) -> str:
    """Say of a leak that it is rounding: what is read of the future, and what it is worth."""
    return (
        f"The computation reads later tokens, which cancel up to rounding: {what} is {bad.figure:.2g} (allowed "
        f"{show(bad.bound)}), rounding in fp64 too, and no change of a later token changes an output before it. A "
        "trained model gains nothing measurable from it; compute it from earlier tokens alone, and it passes."
    )


def _describe_leak(bad: FindingPart, cancels: bool) -> str:
    if cancels:
        return describe_cancelling(bad, f"the dependence between {bad.note}")
    if math.isnan(bad.figure):
        return (
            f"It cannot be said whether it sees the future: the dependence between {bad.note} is NaN. Keep the "
            "results finite (scores divided, keys of norm 1), then audit again."
        )
    return (
        f"It sees the future: the dependence between {bad.note} is {bad.figure:.2g} (allowed {show(bad.bound)}), "
        "so its training loss will look better than it can be in use."
    )


def _list_situations(subject: Subject) -> Iterator[Mode]:
    """Yield every kernel, in training, in bf16 and with masks."""
    causal = dataclasses.replace(subject, causalities=(True,))
    return causal.modes(
        Mode(True), Mode(True, dropout=DROPOUT, training=True), Mode(True, dtype=torch.bfloat16),
        Mode(True, mask="keys"), Mode(True, mask="pairs"),
    )  # fmt: skip


def _list_lengths(mode: Mode) -> list[tuple[int, list[int]]]:
    """Return lengths of long sequences, each with the positions from which tokens are perturbed."""
    lengths = [(LONG, list(BORDERS))]
    # A kernel that sums over spans of 2048 tokens needs a sequence of more than one.
    if mode.kernel == "linear" and mode.dtype == torch.float32 and mode.mask == "none":
        lengths.append((VERY_LONG, [2047, 2048, 2049]))
    return lengths


def _find_by_gradient(subject: Subject, mode: Mode) -> FindingPart:
    """Find the largest gradient of a later token: every pair of a short sequence, borders of a long one."""
    leaks = []
    for name, sizes in _measure_gradients(subject, mode, SHORT, list(range(SHORT)), one_row=True).items():
        size, query, key = find_largest(sizes.triu(1))
        leaks.append(_make_leak(size, 0.0, query, name, key))
    for length, starts in _list_lengths(mode):
        later = torch.arange(length) >= torch.tensor(starts)[:, None]
        for name, sizes in _measure_gradients(subject, mode, length, [t - 1 for t in starts], one_row=False).items():
            size, row, key = find_largest(sizes.masked_fill(~later, 0))
            leaks.append(_make_leak(size, 0.0, starts[row] - 1, name, key))
    return find_worst(leaks)


def _find_by_change(subject: Subject, mode: Mode) -> FindingPart:
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
            for scale in (LARGE, SMALL) if length == SHORT else (LARGE,):
                draw = torch.Generator().manual_seed(7)
                step = scale * torch.randn(base[name].shape, generator=draw, dtype=torch.float64)
                moved = torch.where(is_changed[:, None, :, None], base[name] + step.to(mode.dtype), base[name])
                after = subject.attend({**base, name: moved}, mode)
                change = (after - before).abs().double().amax((1, 3)).masked_fill(position >= start, 0)
                size, row, query = find_largest(change)
                leaks.append(_make_leak(size, noise(before), query, name, starts[row]))
    return find_worst(leaks)


def _make_leak(size: float, bound: float, query: int, name: str, key: int) -> FindingPart:
    return FindingPart("", size, bound, f"output {query} and {WORDS[name]} of token {key}")


def _measure_gradients(
    subject: Subject, mode: Mode, length: int, rows: list[int], *, one_row: bool
) -> dict[str, Tensor]:
    """Return how strongly outputs depend on each position, [rows length], for every input.

    Batch row r covers output rows[r] only or, with one_row=False, all outputs up to it.
    """
    inputs = subject.inputs(1, length, mode.dtype)
    leaves = {name: t.repeat(len(rows), 1, 1, 1).requires_grad_() for name, t in inputs.items()}
    out = subject.attend(leaves, mode)
    position, row = torch.arange(length), torch.tensor(rows)[:, None]
    is_included = position == row if one_row else position <= row
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out.dtype)
    gradients = compute_gradients(out, leaves.values(), cotangent * is_included[:, None, :, None])
    return {name: g.abs().double().amax((1, 3)) for name, g in zip(leaves, gradients, strict=True)}
