"""Which stage is at fault: a mechanism is put together from the baseline, stage by stage in the order of computation,
until the fault appears.

Outputs of ordinary inputs that are not finite are such a fault: no other check could say anything about them. A stage
that takes a block of the queries for all of them, or new tokens for all of them, is found by calling it both ways.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.kernels import reference
from attnlab.kernels.call import Call
from attnlab.mechanisms import Mechanism, Stage

from .check import Check
from .declarations import find_false_declaration
from .finding import Finding, FindingPart
from .subject import LONG, SHORT, Mode, Subject, compute_gradients, peak, tolerance

ORDER = (
    "values", "features", "positions", "forget", "score", "cap", "causal", "mask", "weights", "heads", "delta",
    "output",
)  # fmt: skip
"""The slots in the order in which their stages compute."""

BASELINE = Mechanism()

NUM_REAL = SHORT * 2 // 3
"""The tokens of a short sequence that are not padding."""

INDEPENDENT = ("cost", "value_path", "other")
"""The kinds of checks that do not compare outputs, and a user's own."""


@dataclass(frozen=True)
class NonFinite:
    """Outputs of ordinary inputs that are not finite: how many, of how many, the stage they come from if it is known,
    and where to look."""

    num_broken: int
    num_outputs: int
    stage: str
    where: str

    def report(self, name: str) -> Finding:
        """Return the finding of the check that is about numbers which are not finite."""
        part = FindingPart("outputs of ordinary inputs that are not finite", float(self.num_broken), 0.0)
        source = f"; the first to return such a number is {self.stage}" if self.stage else ""
        sentence = f"{self.num_broken:,} of {self.num_outputs:,} outputs of ordinary inputs are not finite{source}."
        return Finding(name, False, part.figure, part.bound, sentence, self.where, parts=(part,), kind="numerics")

    def make_finding(self, check: Check, subject: Any) -> Finding | None:
        """Return what a check reports instead of its finding; None if it does not apply."""
        if check.kind in ("leak", "prefix", "random_tokens") and subject.causal is False:
            return None
        if check.kind == "positions" and check(subject) is None:
            return None
        if check.kind == "numerics":
            return self.report(check.name)
        sentence = "Not checked: outputs of ordinary inputs are not finite."
        return Finding(check.name, False, math.nan, None, sentence, self.where, kind=check.kind)


def find_non_finite(subject: Subject) -> NonFinite | None:
    """Return what is not finite of the reference's outputs for random inputs in fp32, or None."""
    for causal in subject.causalities:
        try:
            out = _attend(subject, causal)
        except Exception:  # a stage of the user may raise anything; the checks say so, each for itself
            return None
        if num_broken := int((~out.isfinite()).sum()):
            fault = find_first_stage(subject, functools.partial(_is_broken, causal=causal))
            stage = "" if fault is None else f"the {fault.slot} stage '{fault}'"
            return NonFinite(num_broken, out.numel(), stage, stage or f"the stages of '{subject.mechanism}'")
    return None


def _is_broken(subject: Subject, causal: bool) -> bool:
    return not bool(_attend(subject, causal).isfinite().all())


def _attend(subject: Subject, causal: bool) -> Tensor:
    with torch.no_grad():
        return subject.attend(subject.inputs(1, LONG), Mode(causal, "reference"))


def find_first_stage(subject: Subject, has_fault: Callable[[Subject], bool]) -> Stage | None:
    """Return the first stage with which a mechanism has a fault, if those before it compute and the rest is the
    baseline."""
    for stage, stages in _list_parts(subject.mechanism):
        try:
            if has_fault(subject.replace_stages(**stages)):
                return stage
        except MechanismError:  # some stages need others that come later, as forget(per=channel) needs identity
            continue
    return None


def _list_parts(mechanism: Mechanism) -> Iterator[tuple[Stage, dict[str, object]]]:
    """Yield each stage that is not the baseline's, with the slots of the mechanism that ends with it."""
    stages: dict[str, object] = {slot: getattr(BASELINE, slot) for slot in ORDER}
    for slot in ORDER:
        held = getattr(mechanism, slot)
        if isinstance(held, tuple):
            for number, stage in enumerate(held, 1):
                stages[slot] = held[:number]
                yield stage, dict(stages)
        elif held is not None and held != stages[slot]:
            stages[slot] = held
            yield held, dict(stages)


def find_stage_of_blocks(subject: Subject) -> str:
    """Return which of score and weights gives other numbers for a block of the queries, or an empty string.

    Kernels that compute blocks then differ from the reference, and none of them is at fault.
    """
    suspect = _find_stage_of_rows(subject, slice(SHORT // 2, SHORT - 1), SHORT)
    return suspect and (
        f"{suspect}: it gives other numbers for a block of the queries than for all of "
        "them, as torch.arange, the sizes of tensors and sums over queries do; request `positions` or use n "
        "(CONTRIBUTING.md, What a stage may assume)"
    )


def find_stage_of_hidden_keys(subject: Subject) -> str:
    """Return which of score and weights gives other numbers without keys that no query sees, or an empty string.

    Padding and later tokens are such keys, and how many there are is another number in each batch and kernel.
    """
    if not subject.causalities[-1]:
        return ""
    half = SHORT // 2
    suspect = _find_stage_of_rows(subject, slice(0, half), half)
    return suspect and (
        f"{suspect}: it gives other numbers if keys that a query must not see are left out; where it sums or takes "
        "a maximum over keys, hide these before, as in `(t * visible).sum(-1)` (CONTRIBUTING.md, What a stage may "
        "assume)"
    )


def _find_stage_of_rows(subject: Subject, rows: slice, num_keys: int) -> str:
    """Return which of score and weights gives other numbers for some queries and the first keys, all that they see,
    than for all queries and keys."""
    mode = Mode(subject.causalities[-1], dtype=torch.float64)
    whole, _ = subject.prepare(subject.inputs(1, SHORT, torch.float64), mode)
    span = rows.start, rows.stop, num_keys
    block = dataclasses.replace(
        whole, q=whole.q[:, :, rows], k=whole.k[:, :, :num_keys], v=whole.v[:, :, :num_keys],
        visibility=whole.visibility.rows(*span), positions=whole.positions and whole.positions.rows(*span),
        x=whole.x and whole.x.rows(*span),
    )  # fmt: skip
    with torch.no_grad():
        score, stage = whole.mechanism.score, whole.mechanism.weights
        scores, part = (
            score(call.q, call.k, call.params_of(score), **call.gather_needs(score, call.visibility.pairs))
            for call in (whole, block)
        )
        scores, part = (s.masked_fill(_hide(call), 0) for s, call in ((scores, whole), (part, block)))
        suspect: Stage = score
        if _agree(scores[:, :, rows, :num_keys], part):
            suspect = stage
            scores, part = (
                reference.weigh(call, s, call.visibility.pairs) for call, s in ((whole, scores), (block, part))
            )
    if _agree(scores[:, :, rows, :num_keys], part):
        return ""
    return f"the {suspect.slot} stage '{suspect}'"


def find_stage_of_tokens(mechanism: Mechanism) -> str:
    """Return which values or features stage gives other numbers for new tokens alone than for all tokens, or an empty
    string; what such a stage computes depends on padding too."""
    features = tuple(item for item in mechanism.features if item.acts_before_positions or "before" not in item.inputs)
    subject = Subject.create(Mechanism(values=mechanism.values, features=features), None).move_parameters()
    try:
        fault = find_first_stage(subject, _depends_on_other_tokens)
    except Exception:  # a stage of the user may raise anything for other tokens than the whole sequence
        return ""
    if fault is None:
        return ""
    return (
        f"the {fault.slot} stage '{fault}': it gives other numbers for some tokens than for all of them, as means, "
        "shifts and sums over tokens do; with a cache it gets the new tokens only, and padding is among them; act "
        "token by token, and request `before` for the token before, or several with num_before (CONTRIBUTING.md, What "
        "a stage may see of the layer)"
    )


def _depends_on_other_tokens(subject: Subject) -> bool:
    inputs = subject.inputs(1, SHORT, torch.float64)
    with torch.no_grad():
        whole = subject.project(inputs, 0, SHORT)
        parts = [subject.project(inputs, *border) for border in ((0, SHORT // 2), (SHORT // 2, SHORT))]
    return not all(_agree(t, torch.cat([part[name] for part in parts], 2)) for name, t in whole.items())


def _hide(call: Call) -> Tensor:
    pairs = call.visibility.pairs
    return torch.zeros((), dtype=torch.bool) if pairs is None else ~pairs


def _agree(whole: Tensor, part: Tensor) -> bool:
    return peak(whole - part) <= tolerance(whole)


def locate_fault(subject: Subject, parts: Iterable[FindingPart], otherwise: str) -> str:
    """Say where to look: a false declaration, kernels that fail where another passes, the mask, or `otherwise`."""
    trials = [part for part in parts if part.kernel]
    # Kernels are only compared in the same situation.
    sound = {part.situation for part in trials if part.passed}
    kernels = {part.kernel for part in trials if not part.passed and part.situation in sound}
    if kernels:
        if claim := find_false_declaration(subject):
            return f"a declaration that is false, and kernels rely on: {claim}; correct or remove it"
        return f"kernel {', '.join(sorted(kernels))}: other kernels compute the same mechanism without this fault"
    mask = subject.mechanism.causal
    return {
        "after": f"'{mask}': the weights are normalised over all tokens, and only then are later ones set to 0",
        "zero": f"'{mask}': a later token's score becomes 0, and a score of 0 still has weight",
    }.get(mask.where, otherwise)


def find_stage_of_hidden_tokens(subject: Subject) -> str:
    """Return the first stage with which an output depends on a token its query must not see, or an empty string."""
    try:
        fault = find_first_stage(subject.move_parameters(), _depends_on_hidden_tokens)
    except Exception:  # a stage of the user may raise anything when others are taken away
        return ""
    if fault is None:
        return ""
    return (
        f"the {fault.slot} stage '{fault}': with it, and not before it, an output depends on tokens that its query "
        "must not see, as with means and sums over all tokens"
    )


def _depends_on_hidden_tokens(subject: Subject) -> bool:
    """Tell whether an output has a gradient for a later token under a causal mask, or for padding at the end."""
    position = torch.arange(SHORT)
    is_real = position < NUM_REAL
    is_later = position > torch.arange(NUM_REAL)[:, None]
    for causal in subject.causalities:
        rows = torch.eye(SHORT, dtype=torch.float64)[:NUM_REAL]
        leaves = {
            name: t.repeat(NUM_REAL, 1, 1, 1).requires_grad_()
            for name, t in subject.inputs(1, SHORT, torch.float64).items()
        }
        out = subject.attend(leaves, Mode(causal, "reference", torch.float64), mask=is_real.view(1, 1, 1, -1))
        draw = torch.randn(out.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        gradients = compute_gradients(out, leaves.values(), draw * rows[:, None, :, None])
        is_hidden = ~is_real | (is_later & causal)
        if any(bool(g.abs().amax((1, 3))[is_hidden].any()) for g in gradients):
            return True
    return False
