"""Gradient flow in a model: does every trainable parameter get a gradient?

A gradient of rounding is a remark for the model's own parameters: softmax ignores what all keys have in common, such as
their bias. For a parameter of the installed mechanism it is a fault if it is rounding in fp64 too.
"""

from typing import Any

import torch
from torch import Tensor

from ..check import check
from ..finding import Finding, FindingPart
from ..gradients import is_faint
from ..subject import compute_gradients, peak
from .subject import ModelSubject

NAME = "gradient flow"
FAINT = 1e-7
"""The share of the median gradient below which one is rounding."""


@check(NAME, kind="gradients", on="model")
def gradient_flow(subject: ModelSubject) -> Finding:
    """Search for trainable parameters without a gradient, or with one that is not finite."""
    if not any(p.requires_grad for p in subject.model.parameters()):
        return Finding(NAME, False, 0.0, None, "No parameter of the model is trainable.", "requires_grad")
    sizes = _measure_gradients(subject)
    zero = [name for name, size in sizes.items() if size == 0]
    late = []
    if zero and subject.has_parameters:
        # A parameter whose gradient is 0 only at initial values, as behind a gate of 0, still learns.
        with subject.moved() as moved:
            later = _measure_gradients(moved)
        late = [name for name in zero if later[name] > 0]
    dead = [name for name in zero if name not in late]
    broken = [name for name, size in sizes.items() if not size < torch.inf]
    median = sorted(sizes.values())[len(sizes) // 2]
    faint = [name for name, size in sizes.items() if 0 < size < FAINT * median]
    cancelling = [] if dead or broken else _find_cancelling(subject, faint)
    parts = tuple(FindingPart(f"gradient to {name}", size) for name, size in sizes.items())
    wrong = dead or broken or cancelling
    return Finding(
        NAME, not wrong, float(len(dead) + len(broken) + len(cancelling)), 0.0,
        _explain(len(sizes), dead, broken, cancelling, faint, late), ", ".join(wrong[:8]), parts=parts,
        data={"none": dead, "faint": faint, "late": late, "cancelling": cancelling},
    )  # fmt: skip


def _find_cancelling(subject: ModelSubject, faint: list[str]) -> list[str]:
    """Return the mechanism's own parameters among these whose gradient is rounding in fp64 too, wherever they are."""
    own = [name for name in faint if subject.is_of_mechanism(name.partition(" (")[0])]
    if not own:
        return []
    exact = subject.exact
    sizes = [_measure_gradients(exact)]
    with exact.moved() as moved:
        sizes.append(_measure_gradients(moved))
    return [name for name in own if all(is_faint(name, each) for each in sizes)]


def _measure_gradients(subject: ModelSubject) -> dict[str, float]:
    """Return the largest gradient of every trainable parameter, of fused projections in thirds."""
    subject = subject.precise
    trained = {name: p for name, p in subject.model.named_parameters() if p.requires_grad}
    with subject.mode(False):
        gradients = compute_gradients(_sum_outputs(subject.run(subject.tokens(2))), trained.values())
    return dict(piece for name, g in zip(trained, gradients, strict=True) for piece in _measure_pieces(name, g))


def _sum_outputs(output: Any) -> Tensor:
    """Return a randomly weighted sum of everything in a model's output that has a gradient."""
    draw = torch.Generator().manual_seed(5)
    terms = [
        (value * torch.randn(value.shape, generator=draw).to(value)).sum()
        for value in output.values()
        if isinstance(value, Tensor) and value.is_floating_point() and value.requires_grad
    ]
    return torch.stack([term.float() for term in terms]).sum()


def _measure_pieces(name: str, gradient: Tensor) -> list[tuple[str, float]]:
    """Return the largest gradient of a parameter, in thirds if queries, keys and values may be fused in it."""
    shape = gradient.shape
    if len(shape) != 2 or max(shape) != 3 * min(shape):
        return [(name, peak(gradient))]
    thirds = gradient.chunk(3, dim=0 if shape[0] > shape[1] else 1)
    return [(f"{name} ({which} third)", peak(t)) for which, t in zip(("first", "second", "last"), thirds, strict=True)]


def _explain(
    num_parameters: int, dead: list[str], broken: list[str], cancelling: list[str], faint: list[str], late: list[str]
) -> str:
    if dead:
        return f"Training cannot change {_list_names(dead)}: no output of the model depends on it smoothly."
    if broken:
        return f"The gradient to {_list_names(broken)} is not a finite number."
    if cancelling:
        verb = "changes" if len(cancelling) == 1 else "change"
        return f"{_list_names(cancelling)} {verb} nothing: the gradient is rounding, also in fp64. It may cancel."
    sentence = f"All {num_parameters} trainable parameters get a gradient"
    if late:
        sentence += f" ({_list_names(late)} only once training has moved the mechanism's own)"
    if faint:
        return f"{sentence}; to {_list_names(faint)} it is rounding (softmax ignores what all keys have in common)."
    return f"{sentence}."


def _list_names(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
