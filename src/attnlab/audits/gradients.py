"""Gradient flow: queries, keys, values and every learned parameter must get a gradient, and no other tensor.

A trainable tensor that a stage uses without declaring it, such as a global nn.Parameter, is neither trained nor saved.
A parameter that cancels, as in relu(t·s) / Σ relu(t·s), has a gradient of rounding: in fp64 it is far below all others,
and no change of the parameter changes the output.
Also reported, without a bound, is how much of the gradient to queries and keys remains if scores are 10⁵ times as
large, where softmax saturates.
"""

import dataclasses

import torch
from torch import Tensor

from .check import check
from .finding import Finding, FindingPart
from .stage_faults import find_first_stage
from .subject import DIRECTIONS, Inputs, Mode, Subject, compute_gradients, move_values, peak, tolerance

NAME = "gradient flow"
LENGTH = 48
SATURATION = 1e5
FAINT = 1e-11
"""The share of the largest gradient below which one may be rounding in fp64; sums of thousands of terms leave this."""
JUDGED = ("q", "k", "v")
WORDS = {"q": "queries", "k": "keys", "v": "values", "x": "the layer's input", "first": "the first layer's values"}


@check(NAME, kind="gradients")
def gradient_flow(subject: Subject) -> Finding:
    """Search for inputs and parameters without a gradient, or with one that is not finite."""
    causal = subject.causalities[-1]
    undeclared = _find_undeclared_tensors(subject)
    if undeclared:
        return _report_undeclared_tensors(subject, undeclared)
    sizes, later = _measure_gradients(subject, causal), _measure_gradients(subject.move_parameters(), causal)
    judged = [*JUDGED, *subject.parameters]
    zero = [name for name in judged if not sizes[name] > 0]
    # A parameter whose gradient is 0 only at its initial value, as behind a gate of 0, still learns.
    dead = [name for name in zero if not later[name] > 0]
    broken = [name for name in sizes if not sizes[name] < torch.inf]
    faint = [] if broken else [
        name for name in subject.parameters
        if name not in dead and is_faint(name, sizes) and is_faint(name, later) and _cancels(subject, name, causal)
    ]  # fmt: skip
    notes = {
        **dict.fromkeys(broken, "not finite"), **dict.fromkeys(dead, "none"), **dict.fromkeys(faint, "rounding"),
    }  # fmt: skip
    parts = [
        FindingPart(f"gradient to {_name_input(name)}", size, note=notes.get(name, "")) for name, size in sizes.items()
    ]
    left = _measure_saturation(subject, causal, sizes)
    parts.append(FindingPart("gradient to queries and keys left at scores × 1e5", left))
    return Finding(
        NAME, not notes, float(len(notes)), 0.0,
        _explain(subject, dead, broken, faint, left, [name for name in zero if name not in dead]),
        _name_blocking_stages(subject, dead or broken or faint) if notes else "", parts=tuple(parts),
        data={"smallest": min((sizes[name] for name in judged), default=0.0)},
    )  # fmt: skip


def _measure_gradients(subject: Subject, causal: bool, factor: float = 1.0) -> dict[str, float]:
    """Return the largest gradient of each input and parameter, with queries and keys multiplied by a factor."""
    out, leaves, learned = _attend(subject, causal, factor)
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5), dtype=out.dtype)
    gradients = compute_gradients(out, [*leaves.values(), *learned.values()], cotangent)
    return {name: peak(g) for name, g in zip([*leaves, *learned], gradients, strict=True)}


def is_faint(name: str, sizes: dict[str, float]) -> bool:
    """Tell whether the gradient of a name is so far below the largest that it may be rounding in fp64."""
    return sizes[name] <= FAINT * max(sizes.values())


def _cancels(subject: Subject, name: str, causal: bool) -> bool:
    """Tell whether moving a parameter, either way, changes the output by rounding only."""
    inputs, mode = subject.inputs(2, LENGTH, torch.float64), Mode(causal, "reference", torch.float64)
    with torch.no_grad():
        for start in (subject, subject.move_parameters()):
            out = start.attend(inputs, mode)
            for direction in DIRECTIONS:
                moved = move_values(start.parameters[name], torch.Generator().manual_seed(3), direction)
                other = dataclasses.replace(start, parameters={**start.parameters, name: moved}).attend(inputs, mode)
                if other.isfinite().all() and peak(other - out) > tolerance(out):
                    return False
    return True


def _attend(subject: Subject, causal: bool, factor: float = 1.0) -> tuple[Tensor, Inputs, Inputs]:
    """Return the reference's output, and the inputs and learned parameters that it depends on."""
    inputs = subject.inputs(2, LENGTH, torch.float64)
    inputs = {name: t * factor if name in ("q", "k") else t for name, t in inputs.items()}
    leaves = {name: t.requires_grad_() for name, t in inputs.items()}
    learned = {name: p.requires_grad_() for name, p in subject.cast_parameters(torch.float64).items()}
    out = dataclasses.replace(subject, parameters=learned).attend(leaves, Mode(causal, "reference", torch.float64))
    return out, leaves, learned


def _find_undeclared_tensors(subject: Subject) -> list[Tensor]:
    """Return the trainable tensors that the output depends on beside the inputs and the declared parameters."""
    out, leaves, learned = _attend(subject, subject.causalities[-1])
    known = {id(t) for t in (*leaves.values(), *learned.values())}
    nodes, seen, undeclared = [out.grad_fn], set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)  # only a leaf's node, which accumulates its gradient, has one
        if leaf is not None and id(leaf) not in known:
            undeclared.append(leaf)
        nodes += [source for source, _ in node.next_functions]
    return undeclared


def _report_undeclared_tensors(subject: Subject, undeclared: list[Tensor]) -> Finding:
    stage = find_first_stage(subject, lambda part: bool(_find_undeclared_tensors(part)))
    kind, shape = type(undeclared[0]).__name__, list(undeclared[0].shape)
    sentence = (
        f"The output depends on a trainable {kind} {shape} that no stage declares, so that it is neither trained nor "
        "saved with a model: declare it in `parameters`, and read it from p."
    )
    where = f"the {stage.slot} stage '{stage}'" if stage is not None else f"the stages of '{subject.mechanism}'"
    return Finding(NAME, False, float(len(undeclared)), 0.0, sentence, where)


def _measure_saturation(subject: Subject, causal: bool, sizes: dict[str, float]) -> float:
    """Return the share of the gradient to queries and keys that remains if both are large."""
    factor = SATURATION**0.5
    large = _measure_gradients(subject, causal, factor)
    # d/dq of f(factor·q) is factor times the gradient with respect to factor·q.
    shares = [large[name] * factor / sizes[name] for name in ("q", "k") if sizes[name] > 0]
    return min(shares, default=0.0)


def _explain(
    subject: Subject, dead: list[str], broken: list[str], faint: list[str], left: float, late: list[str]
) -> str:
    if dead:
        names = " and ".join(map(_name_input, dead))
        return f"Training cannot change {names}: the output does not depend on them smoothly, so their gradient is 0."
    if broken:
        return f"The gradient to {' and '.join(map(_name_input, broken))} is not a finite number."
    if faint:
        names, verb = " and ".join(map(_name_input, faint)), "changes" if len(faint) == 1 else "change"
        names = names[0].upper() + names[1:]
        return (
            f"{names} {verb} nothing: the gradient is rounding, also in fp64, and moving it changes no output. It may "
            "cancel, as a factor does in a normalised sum; remove it, or use it where it does not cancel."
        )
    learned = ", and every learned parameter," if subject.parameters else ""
    sentence = f"Queries, keys and values{learned} get gradients"
    if late:
        sentence += f" ({', '.join(late)} only once training has moved it)"
    if left < 1e-3:
        sentence += "; if scores are 10⁵ times as large, the weights saturate and almost no gradient is left"
    return f"{sentence}."


def _name_input(name: str) -> str:
    return WORDS.get(name, f"parameter '{name}'")


def _name_blocking_stages(subject: Subject, names: list[str]) -> str:
    mechanism = subject.mechanism
    stages = [
        str(item) for label, item in mechanism.label_stages() if any(name.startswith(f"{label}_") for name in names)
    ]
    if set(JUDGED) <= set(names) and mechanism.output:
        stages = [*map(str, mechanism.output), str(mechanism.weights), *stages]
    elif "v" in names:
        stages = [str(mechanism.weights), *map(str, mechanism.values), *stages]
    elif {"q", "k"} & set(names):
        stages = [str(mechanism.weights if _scores_have_gradients(subject) else mechanism.score), *stages]
    return "the stage " + " or ".join(f"'{stage}'" for stage in dict.fromkeys(stages))


def _scores_have_gradients(subject: Subject) -> bool:
    inputs = subject.inputs(1, LENGTH, torch.float64)
    q, k = inputs["q"].requires_grad_(), inputs["k"].requires_grad_()
    return all(peak(g) > 0 for g in compute_gradients(subject.scores(q, k).square().sum(), (q, k)))
