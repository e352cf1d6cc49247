"""Prefix consistency: is what a token gets from the whole sequence what it gets from the tokens up to it alone?

That is the promise by which a model trained on whole sequences may write one token at a time. It is asked of the
prefix, of a cache with one query or several at a time, and of the recurrent form where there is one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.errors import KernelError
from attnlab.kernels import linear

from .check import check
from .finding import Finding, FindingPart, worst
from .subject import LONG, ROUNDINGS, SHORT, Inputs, Mode, Subject, largest, noise, peak

NAME = "prefix consistency"

ENDS = (1, 2, 63, 64, 65, 128, 129, LONG)
CHUNK = 7


@check(NAME, kind="prefix")
def prefix_consistency(subject: Subject) -> Finding | None:
    """Compare the whole sequence with prefixes, caches and the recurrent form."""
    if True not in subject.causalities:
        return None
    parts: list[FindingPart] = []
    ways = (Mode(True, dtype=torch.float64), Mode(True))
    for mode in dataclasses.replace(subject, causalities=(True,)).modes(*ways):
        parts += [compared(form, decode, subject, mode) for form, decode in FORMS.items()]
    if is_recurrent(subject):
        parts.append(compared("recurrent", recurrent, subject, Mode(True, "linear", torch.float64)))
    bad = worst(parts)
    forms = "alone, from a cache, by chunks" + (" and by the recurrent form" if is_recurrent(subject) else "")
    if bad.passed:
        said = f"A token gets the same from the whole sequence as from the tokens before it {forms}."
    else:
        said = (
            f"Computed {HOW[bad.note]} an output differs by {bad.figure:.2g} from the "
            "one computed with the whole sequence there: what the model learns in training it will not do in use."
        )
    where = "" if bad.passed else subject.blame(parts, f"{bad.name}: positions, counts and offsets of the stages")
    return Finding(NAME, bad.passed, bad.figure, bad.bound, said, where, parts=tuple(parts))


Decode = Callable[[Subject, Mode, Inputs, int], Tensor]


def compared(form: str, decode: Decode, subject: Subject, mode: Mode) -> FindingPart:
    """Measure the largest difference between the whole and one way of decoding, over prefixes of two sequences."""
    apart, bound = 0.0, 0.0
    for length, ends in ((SHORT, range(1, SHORT + 1)), (LONG, ENDS)):
        inputs = subject.inputs(1, length, mode.dtype)
        whole = subject.attend(inputs, mode)
        bound = max(bound, noise(whole, ROUNDINGS[mode.dtype]))
        for end in ends:
            out = decode(subject, mode, inputs, end)
            apart = largest([apart, peak(out - whole[:, :, end - out.shape[2] : end])])
    return FindingPart(f"{form}, {mode}", apart, bound, form, mode.kernel)


def alone(subject: Subject, mode: Mode, inputs: Inputs, end: int) -> Tensor:
    """Attend over the prefix alone."""
    return subject.attend({name: t[:, :, :end] for name, t in inputs.items()}, mode)


def cached(subject: Subject, mode: Mode, inputs: Inputs, end: int, num_queries: int = 1) -> Tensor:
    """Attend with the last queries of a prefix against the keys and values of all of it."""
    bare, held = subject.projected(inputs)
    queries = held["q"][:, :, max(0, end - num_queries) : end]
    return bare.attend({"q": queries, "k": held["k"][:, :, :end], "v": held["v"][:, :, :end]}, mode)


def chunked(subject: Subject, mode: Mode, inputs: Inputs, end: int) -> Tensor:
    """Attend with several queries at once against a cache."""
    return cached(subject, mode, inputs, end, CHUNK)


HOW = {
    "alone": "from the prefix alone",
    "cached": "from a cache, a token at a time,",
    "chunked": "from a cache, several tokens at a time,",
    "recurrent": "by the recurrent form",
}
FORMS: dict[str, Decode] = {"alone": alone, "cached": cached, "chunked": chunked}
"""The ways to compute from the past alone, by name."""


def is_recurrent(subject: Subject) -> bool:
    """Tell whether the mechanism can be decoded with a state of constant size."""
    bare, held = subject.projected(subject.inputs(1, 1, torch.float64))
    mechanism = dataclasses.replace(bare.mechanism, output=())
    try:
        linear.step(mechanism, held["q"], held["k"], held["v"], None, parameters_of(bare))
    except KernelError:
        return False
    return True


def recurrent(subject: Subject, mode: Mode, inputs: Inputs, end: int) -> Tensor:
    """Attend token by token with the running state."""
    bare, held = subject.projected(inputs)
    mechanism, learned, state, rows = dataclasses.replace(bare.mechanism, output=()), parameters_of(bare), None, []
    for t in range(end):
        now = slice(t, t + 1)
        row, state = linear.step(
            mechanism, held["q"][:, :, now], held["k"][:, :, now], held["v"][:, :, now], state, learned
        )
        rows.append(row)
    out = torch.cat(rows, 2)
    for stage in bare.mechanism.output:
        out = stage(out, held["q"][:, :, :end], bare.mechanism.params_of(stage, learned))
    return out


def parameters_of(subject: Subject) -> dict[str, Tensor]:
    """Return what the mechanism learns, in the precision of this check."""
    return {name: p.double() for name, p in subject.parameters.items()}
