"""Which kernel computes a request, why, why faster ones cannot, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, get_args

import torch
from torch import Tensor, nn

from attnlab.errors import KernelError, RequestError, closest
from attnlab.mechanisms import Mask, Mechanism, Score, Stage, Weights, parse_mechanism
from attnlab.notebook import Facts, Showable

from . import additive, banded, blockwise, distance, linear, reference, rowwise, sdpa
from .call import Call, MaskKind, Request, check_sizes, refuse_mixer
from .cost import Cost, estimate
from .cpu import native
from .failures import name_failing_stage
from .fold import adapt_request
from .masks import hide_pairs


class Kernel(Protocol):
    """A way to compute a mechanism: its name, a description, the reason it cannot compute a request, and `attend`."""

    @property
    def NAME(self) -> str: ...  # noqa: D102, N802
    @property
    def FORM(self) -> str: ...  # noqa: D102, N802
    def refusal(self, request: Request) -> str | None: ...  # noqa: D102
    def attend(self, call: Call) -> Tensor: ...  # noqa: D102


class _Banded:
    """The banded kernel, whose blocks the fastest of the others computes."""

    NAME, FORM, refusal = banded.NAME, banded.FORM, staticmethod(banded.refusal)

    def attend(self, call: Call) -> Tensor:
        """Return weights·values."""
        return banded.attend(call, lambda blocks: choose(blocks.request)[0].attend(blocks))


BANDED = _Banded()

ORDER: tuple[Kernel, ...] = (BANDED, linear, sdpa, additive, distance, blockwise, rowwise, reference)
"""The kernels; of several that can compute the same request, the fastest comes first, but for bands that are too short
(`banded.find_no_gain`)."""

LOOPS = ("additive", *distance.FORMS)
"""The forms of scores that the compiled loops compute."""

KERNELS: Mapping[str, Kernel] = {kernel.NAME: kernel for kernel in ORDER}
"""Every kernel by its name."""


WHOLE_ROWS = (rowwise.NAME, reference.NAME)
"""The kernels that hold the pairs of all heads, with everything that the reference's equations name."""


def refuse(kernel: Kernel, request: Request) -> str | None:
    """Return why a kernel cannot compute a request, or None; `adapt_request` gives the request that it gets."""
    return _refuse_stages(kernel, request) or kernel.refusal(request)


def _refuse_stages(kernel: Kernel, request: Request) -> str | None:
    """Return which stage of the mechanism a kernel does not know, or None."""
    mechanism = request.mechanism
    if kernel.NAME in WHOLE_ROWS:
        return None
    if mechanism.heads is not None and mechanism.heads.mixes_pairs:
        return f"computes heads apart, and '{mechanism.heads}' mixes their pairs"
    if mechanism.forget is not None and kernel is not linear:
        return f"adds no decay to these pairs, as '{mechanism.forget}' does"
    asking = [stage for stage in (mechanism.score, mechanism.weights) if "x" in stage.inputs]
    return f"does not pass on the layer's input, which '{asking[0]}' needs" if asking else None


def list_kernels(request: Request) -> list[str]:
    """List the kernels that can compute a call with this request."""
    adapted = adapt_request(request)
    return [kernel.NAME for kernel in ORDER if refuse(kernel, adapted) is None]


COMPLETE = "nothing more can be declared: no trait of your stages would give a faster kernel"
"""What is said where a stage of the user's own gets no advice."""


@dataclass(frozen=True, repr=False)
class Explanation(Showable):
    """The chosen kernel and why, why faster ones cannot compute the request, and the cost of the choice.

    uncounted: stages of the user's own whose calls the cost does not contain. advice: what the author of a stage can
    declare to get a faster kernel. is_complete: stages of the user's own declare all that a faster kernel could use.
    """

    request: Request
    kernel: str
    reason: str
    refused: Mapping[str, str]
    cost: Cost
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    is_complete: bool = False

    def facts(self) -> Facts:
        """Return the chosen kernel, its cost, why others were refused, and notes."""
        rows = [("cost", "", self._describe_cost()), *(("refused", name, why) for name, why in self.refused.items())]
        rows += [("note", "", note) for note in self.notes] + [("faster", "", line) for line in self._list_faster()]
        return Facts(str(self.request.mechanism), f"kernel {self.kernel}: {self.reason}", rows=rows)

    def _describe_cost(self) -> str:
        names = " and ".join(f"'{name}'" for name in self.uncounted)
        verb = "compute themselves" if len(self.uncounted) > 1 else "computes itself"
        return f"{self.cost}{f', without what {names} {verb}' if names else ''} ({self.request.describe()})"

    def __str__(self) -> str:
        lines = [f"{self.request.mechanism}", f"  kernel   {self.kernel}: {self.reason}"]
        lines.append(f"  cost     {self._describe_cost()}")
        lines += [f"  refused  {name}: {why}" for name, why in self.refused.items()]
        lines += [f"  note     {note}" for note in self.notes]
        return "\n".join([*lines, *(f"  faster   {line}" for line in self._list_faster())])

    def _list_faster(self) -> tuple[str, ...]:
        return (COMPLETE,) if self.is_complete else self.advice


def choose(request: Request, kernel: str = "auto") -> tuple[Kernel, dict[str, str]]:
    """Return the named kernel, or with 'auto' the first that can compute the request; and why those before cannot."""
    if kernel != "auto":
        if kernel not in KERNELS:
            known = ["auto", *KERNELS]
            hint = closest(kernel, known) or f"; the kernels are {', '.join(known)}"
            raise KernelError(f"no kernel is named '{kernel}'{hint}")
        reason = refuse(KERNELS[kernel], request)
        if reason:
            able = [other.NAME for other in ORDER if refuse(other, request) is None]
            raise KernelError(
                f"kernel '{kernel}' cannot compute '{request.mechanism}': {reason}; "
                f"use kernel='auto', or one that can: {', '.join(able)}"
            )
        return KERNELS[kernel], {}
    refused: dict[str, str] = {}
    # Without masks there is no band to speak of.
    for candidate in ORDER if request.mechanism.mask else ORDER[1:]:
        reason = refuse(candidate, request)
        if reason is None and candidate is BANDED:
            reason = banded.find_no_gain(request)
        if reason is None:
            # Only scores of the compiled loops ask whether these are available: building them takes seconds.
            missing = native.explain_missing() if request.mechanism.score.form in LOOPS else None
            if missing is not None and missing in refused.values():
                native.warn_missing()
            return candidate, refused
        refused[candidate.NAME] = reason
    raise AssertionError("the reference accepts every request")


def compute(kernel: Kernel, call: Call) -> Tensor:
    """Return weights·values, computed by a kernel; those that know no masks of positions get them as pairs."""
    return kernel.attend(call if kernel is BANDED else hide_pairs(call))


@name_failing_stage
def explain(
    mechanism: str | Mechanism, length: int = 512, *, num_queries: int | None = None, causal: bool = False,
    mask: MaskKind = "none", dropout: float = 0.0, batch: int = 1, num_heads: int = 4, head_dim: int = 64,
    dtype: torch.dtype = torch.float32, device: str = "cpu", kernel: str = "auto",
) -> Explanation:  # fmt: skip
    """Explain which kernel computes a mechanism over `length` keys, why, and what it costs."""
    check_sizes(length=length, batch=batch, num_heads=num_heads, head_dim=head_dim)
    if mask not in get_args(MaskKind):
        raise RequestError(f"mask must be one of {', '.join(get_args(MaskKind))}, not {mask!r}")
    if not isinstance(dtype, torch.dtype):
        raise RequestError(f"dtype must be a torch dtype such as torch.float32, not {dtype!r}")
    if isinstance(mechanism, nn.Module):
        raise RequestError(
            f"attnlab.explain takes a mechanism, not a {type(mechanism).__name__}; for a model, give "
            "attnlab.describe(model), the line of its attention (one part of it, if the line is by layer), with "
            "num_heads= and head_dim= of the model"
        )
    parsed = parse_mechanism(mechanism)
    refuse_mixer(parsed)
    parsed.parameters(num_heads, head_dim)  # refuses sizes and shapes that `attend` refuses
    request = Request(
        parsed, length if num_queries is None else num_queries, length, head_dim, head_dim,
        num_heads, batch, causal, mask, dropout, dtype, device,
    )  # fmt: skip
    adapted = adapt_request(request) if kernel != reference.NAME else request
    chosen, refused = choose(adapted, kernel)
    notes = tuple(note for _, stage in request.mechanism.label_stages() for note in stage.notes)
    own = [stage for _, stage in request.mechanism.label_stages() if not stage.origin.startswith("attnlab.")]
    inner = choose(banded.fold_request(adapted))[0] if chosen is BANDED else chosen
    is_by_row = inner.NAME in (rowwise.NAME, reference.NAME)
    heads, by_row = request.mechanism.heads, tuple(stage for stage in request.mechanism.mask if stage.is_by_row)
    stages: tuple[Stage | None, ...] = ()
    if is_by_row:
        # While heads mix pairs, a mask needs whole rows or a stage needs x, declarations of others change nothing.
        is_bound = by_row or (heads is not None and heads.mixes_pairs)
        meeting = (request.mechanism.score, request.mechanism.weights)
        needing_x = tuple(stage for stage in meeting if "x" in stage.inputs)
        stages = (heads,) if is_bound else (*(needing_x or meeting), heads)
    advising = (*stages, *request.mechanism.mask)
    advice = tuple(stage.advice for stage in advising if stage is not None and stage.advice)
    form = chosen.FORM if inner is chosen else f"{chosen.FORM}, by {inner.NAME}: {inner.FORM}"
    why = form if kernel == "auto" else f"as requested; {form}"
    is_complete = bool(own) and not advice and kernel == "auto"
    cost, uncounted = estimate(adapted, chosen.NAME), tuple(str(stage) for stage in own if not _is_counted(stage))
    return Explanation(request, chosen.NAME, why, refused, cost, notes, advice, uncounted, is_complete)


def _is_counted(stage: Stage) -> bool:
    """Tell whether a stage declares what its call computes, so that a kernel computes it, or its cost is measured."""
    if isinstance(stage, Score):
        return stage.form is not None
    if isinstance(stage, Weights):
        return stage.is_softmax or stage.tile_rule is not None
    return isinstance(stage, Mask)
