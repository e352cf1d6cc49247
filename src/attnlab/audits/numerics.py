"""Numerics: rows without a visible key, scores of ±10⁵, half precision, and gradients that are the derivative.

A row without a visible key gives zeros and zero gradients. Scores of 10⁵, and ordinary ones in fp16 and bf16, give
finite numbers; so are the scores themselves. The gradients equal finite differences, unless a stage declares those of
another function.
"""

import dataclasses

import torch
from torch import Tensor
from torch.autograd import gradcheck

from .check import check
from .finding import Finding, FindingPart, judge_parts
from .stage_faults import locate_fault
from .subject import LONG, Inputs, Mode, Subject, compute_gradients, disable_onednn, largest, peak

NAME = "numerics"
LARGE = 1e5
TINY = 5


@check(NAME, kind="numerics", moves_parameters=True)
def numerics(subject: Subject) -> Finding:
    """Search for NaN, overflow and wrong derivatives."""
    # An output stage may add to a row without a visible key; before it, the row must be zero.
    inner = subject.replace_stages(output=())
    masked = (Mode(False, mask="keys"), Mode(False, mask="pairs"))
    parts = [_check_scores(subject), *(_check_empty_rows(inner, mode) for mode in inner.modes(*masked))]
    for mode in subject.modes():
        inputs = subject.inputs(2, LONG, mode.dtype)
        note = "Scores of ±10⁵ make numbers that are not finite: one bad batch would end a training run."
        parts.append(_check_finite(subject, mode, "scores of ±1e5", _scale_scores(inputs, LARGE), note))
        zeroed = {name: t.index_fill(2, torch.tensor([0, 5]), 0) for name, t in inputs.items()}
        equal = {**zeroed, "k": zeroed["q"].clone()}
        note = "A query that equals its key, or a token of zeros, makes numbers that are not finite."
        parts.append(_check_finite(subject, mode, "queries that are keys, and zeros", equal, note))
    with disable_onednn():
        for dtype in (torch.float16, torch.bfloat16):
            inputs, precision = subject.inputs(2, LONG, dtype), str(dtype).removeprefix("torch.")
            note = f"Ordinary inputs make numbers that are not finite in {precision}."
            for mode in subject.modes(Mode(False, dtype=dtype)):
                parts.append(_check_finite(subject, mode, "half precision", inputs, note))
            out = subject.attend(_scale_scores(inputs, LARGE), Mode(subject.causalities[-1], dtype=dtype))
            share = _count_broken(out) / out.numel()
            parts.append(FindingPart(f"outputs lost in {precision} at scores of ±1e5", share))
    # A straight-through gradient is that of another function.
    is_exact = not getattr(subject.mechanism.weights, "straight_through", False)
    parts += [_check_derivative(subject, mode, is_exact) for mode in subject.modes(Mode(False, dtype=torch.float64))]
    return judge_parts(
        NAME, parts,
        passed=(
            "Rows that see nothing give zeros, scores of ±10⁵ and half precision give finite numbers, and the "
            f"gradients are {'the derivatives' if is_exact else 'those of another function by design'}."
        ),
        failed=lambda bad: bad.note,
        where=lambda bad: locate_fault(subject, parts, f"the stages of '{subject.mechanism}' (test: {bad.name})"),
    )  # fmt: skip


def _check_scores(subject: Subject) -> FindingPart:
    """Count the scores of ordinary inputs that are not finite."""
    call, _ = subject.prepare(subject.inputs(1, LONG), Mode(False))
    score = call.mechanism.score
    with torch.no_grad():
        scores = score(call.q, call.k, call.params_of(score), **call.gather_needs(score, None))
    note = (
        f"'{score}' gives scores that are not finite. Softmax makes weights of 0 of −∞, other weights and rows without "
        "another score make NaN: hide pairs by a Mask stage."
    )
    return FindingPart("scores that are not finite", float(_count_broken(scores)), 0.0, note)


def _check_empty_rows(subject: Subject, mode: Mode) -> FindingPart:
    """Measure the output of rows without a visible key, and the gradients of the inputs from it."""
    leaves = {name: t.requires_grad_() for name, t in subject.inputs(2, LONG).items()}
    mask = torch.ones(2, 1, 1 if mode.mask == "keys" else LONG, LONG, dtype=torch.bool)
    rows = slice(None) if mode.mask == "keys" else slice(3, None, 7)
    mask[1, :, rows] = False
    out = subject.attend(leaves, mode, mask)
    empty = out[1, :, rows]
    sizes = [peak(empty), *(peak(g[1]) for g in compute_gradients(empty.sum(), leaves.values()))]
    note = "A row that may see nothing must give zeros and zero gradients, and this one does not."
    size = torch.inf if _count_broken(out) else largest(sizes)
    return FindingPart(f"nothing to see, {mode}", size, 0.0, note, mode.kernel)


def _check_finite(subject: Subject, mode: Mode, name: str, inputs: Inputs, note: str) -> FindingPart:
    leaves = {key: t.detach().requires_grad_() for key, t in inputs.items()}
    out = subject.attend(leaves, mode)
    num_broken = sum(map(_count_broken, (out, *compute_gradients(out.sum(), leaves.values()))))
    return FindingPart(f"{name}, {mode}", float(num_broken), 0.0, note, mode.kernel)


def _check_derivative(subject: Subject, mode: Mode, is_exact: bool) -> FindingPart:
    inputs, learned = subject.inputs(1, TINY, torch.float64), subject.cast_parameters(torch.float64)

    def run(*tensors: Tensor) -> Tensor:
        given = dict(zip([*inputs, *learned], tensors, strict=True))
        changed = dataclasses.replace(subject, parameters={name: given[name] for name in learned})
        return changed.attend({name: given[name] for name in inputs}, mode)

    tensors = tuple(t.requires_grad_() for t in (*inputs.values(), *learned.values()))
    agrees = gradcheck(run, tensors, raise_exception=False, fast_mode=True, check_undefined_grad=False)
    note = "The gradient is not the derivative of the output, by finite differences."
    return FindingPart(f"gradcheck, {mode}", float(not agrees), 0.0 if is_exact else None, note, mode.kernel)


def _scale_scores(inputs: Inputs, factor: float) -> Inputs:
    return {name: t * factor**0.5 if name in ("q", "k") else t for name, t in inputs.items()}


def _count_broken(tensor: Tensor) -> int:
    return int((~tensor.isfinite()).sum())
