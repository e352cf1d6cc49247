"""Prefix consistency: does a token get the same output from the whole sequence as from the tokens up to it?

Only then may a model trained on whole sequences generate one token at a time. Tested are the prefix alone, a cache with
one query or several at a time, and the recurrent form if there is one.
"""

import dataclasses
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from attnlab.errors import KernelError
from attnlab.kernels import linear
from attnlab.kernels.attend import finish

from .check import check
from .finding import Finding, FindingPart, judge_parts
from .stage_faults import (
    find_stage_of_blocks,
    find_stage_of_hidden_keys,
    find_stage_of_hidden_tokens,
    find_stage_of_tokens,
    locate_fault,
)
from .subject import LONG, SHORT, Inputs, Mode, Subject, largest, peak, tolerance

NAME = "prefix consistency"

ENDS = (1, 2, 63, 64, 65, 128, 129, LONG)
CHUNK = 7


@check(NAME, kind="prefix", moves_parameters=True)
def prefix_consistency(subject: Subject) -> Finding | None:
    """Compare the whole sequence with prefixes, caches and the recurrent form."""
    if True not in subject.causalities:
        return None
    parts: list[FindingPart] = []
    ways = (Mode(True, dtype=torch.float64), Mode(True))
    for mode in dataclasses.replace(subject, causalities=(True,)).modes(*ways):
        parts += [_compare(form, decode, subject, mode) for form, decode in FORMS.items()]
    is_recurrent = _is_recurrent(subject)
    if is_recurrent:
        parts.append(_compare("recurrent", _decode_recurrently, subject, Mode(True, "linear", torch.float64)))
    forms = "alone, from a cache, by chunks" + (" and by the recurrent form" if is_recurrent else "")
    return judge_parts(
        NAME, parts,
        passed=f"A token gets the same from the whole sequence as from the tokens before it {forms}.",
        failed=lambda bad: (
            f"Computed {HOW[bad.note]} an output differs by {bad.figure:.2g} from the "
            "one computed with the whole sequence there: what the model learns in training it will not do in use."
        ),
        where=lambda bad: find_stage_of_blocks(subject)
        or find_stage_of_hidden_keys(subject)
        or find_stage_of_tokens(subject.mechanism)
        or locate_fault(
            subject, parts,
            find_stage_of_hidden_tokens(subject) or f"positions, counts or offsets of the stages (test: {bad.name})",
        ),
    )  # fmt: skip


Decode = Callable[[Subject, Mode, Inputs, int], Tensor]


def _compare(form: str, decode: Decode, subject: Subject, mode: Mode) -> FindingPart:
    """Measure the largest difference between the whole and one way of decoding, over prefixes of two sequences."""
    difference, bound = 0.0, 0.0
    for length, ends in ((SHORT, range(1, SHORT + 1)), (LONG, ENDS)):
        inputs = subject.inputs(1, length, mode.dtype)
        whole = subject.attend(inputs, mode)
        bound = max(bound, tolerance(whole))
        for end in ends:
            out = decode(subject, mode, inputs, end)
            difference = largest([difference, peak(out - whole[:, :, end - out.shape[2] : end])])
    return FindingPart(f"{NAMES[form]}, {mode}", difference, bound, form, mode.kernel)


def _attend_to_prefix(subject: Subject, mode: Mode, inputs: Inputs, end: int) -> Tensor:
    return subject.attend({name: t[:, :, :end] for name, t in inputs.items()}, mode)


def _decode_cached(subject: Subject, mode: Mode, inputs: Inputs, end: int, num_queries: int = 1) -> Tensor:
    """Attend with the last queries of a prefix, which are new, to the keys and values of all of it."""
    start = max(0, end - num_queries)
    core, cache = subject.apply_projection_stages({name: t[:, :, :end] for name, t in inputs.items()}, [start])
    return core.attend({**cache, "q": cache["q"][:, :, start:]}, mode)


NAMES = {
    "alone": "prefix alone", "cached": "one token after a cache", "chunked": "several tokens after a cache",
    "recurrent": "recurrent form",
}  # fmt: skip
HOW = {
    "alone": "from the prefix alone",
    "cached": "from a cache, a token at a time,",
    "chunked": "from a cache, several tokens at a time,",
    "recurrent": "by the recurrent form",
}
FORMS: dict[str, Decode] = {
    "alone": _attend_to_prefix, "cached": _decode_cached, "chunked": partial(_decode_cached, num_queries=CHUNK),
}  # fmt: skip
"""The ways to compute from the past alone, by name."""


def _is_recurrent(subject: Subject) -> bool:
    """Tell whether the mechanism can be decoded with a state of constant size."""
    try:
        _decode_recurrently(subject, Mode(True), subject.inputs(1, 1, torch.float64), 1)
    except KernelError:
        return False
    return True


def _decode_recurrently(subject: Subject, mode: Mode, inputs: Inputs, end: int) -> Tensor:
    core, cache = subject.apply_projection_stages({name: t[:, :, :end] for name, t in inputs.items()}, range(1, end))
    learned = core.cast_parameters(torch.float64)
    mechanism, state, rows = dataclasses.replace(core.mechanism, output=(), heads=None), None, []
    values = cache["v"] if core.mechanism.heads is None else core.mechanism.heads.spread_values(cache["v"])
    x = cache["x"].transpose(1, 2).flatten(2) if "x" in cache else None
    for t in range(end):
        q, k, v = (tensor[:, :, t : t + 1] for tensor in (cache["q"], cache["k"], values))
        row, state = linear.step(mechanism, q, k, v, state, learned, None if x is None else x[:, t : t + 1])
        rows.append(row)
    call, _ = core.prepare(cache, Mode(True, dtype=torch.float64))
    return finish(call, torch.cat(rows, 2))
