"""Equivalences: results that must be equal, computed both ways.

A stage is what it declares. Every kernel agrees with the reference, also at sizes at which it splits the problem. A
row's weights do not change if forbidden keys are removed. bypass with α = 0 is the baseline; with activation=identity
it is the projection W + αI. Masking after softmax, renormalised, is masking before it. With share(qk) scores are
symmetric.
"""

import dataclasses
import functools
from collections.abc import Iterator

import torch
from torch import Tensor

from attnlab.kernels import reference
from attnlab.kernels.attend import attend, weights
from attnlab.kernels.call import Call, MaskKind
from attnlab.kernels.prepare import prepare
from attnlab.kernels.standins import fill_standins
from attnlab.mechanisms import CausalMask, Mechanism, Positions, Value

from .check import check
from .declarations import DECLARATION, check_declarations
from .finding import Finding, FindingPart, judge_parts
from .stage_faults import find_stage_of_blocks
from .subject import LONG, MANY_HEADS, SHORT, Mode, Subject, compute_gradients, draw_mask, largest, peak, tolerance

NAME = "equivalences"
REFERENCE = "reference"
MASKS: tuple[MaskKind, ...] = ("none", "keys", "pairs")

SEVERAL = 2
"""Sequences of a batch that every kernel splits."""

SPANS = {"linear": 2100, "sdpa": 600}
"""Lengths at which these kernels split the keys too: running sums after 2048 tokens, torch's fused pass after 512."""


@check(NAME, kind="equivalences", moves_parameters=True)
def equivalences(subject: Subject) -> Finding:
    """Compute both ways what must be equal."""
    parts = list(check_declarations(subject))
    if all(part.passed for part in parts):  # kernels rely on the declarations
        parts += [*_compare_kernels(subject), *_check_identities(subject)]
    identities = [
        part.name for part in parts if not part.kernel and part.bound is not None and part.note != DECLARATION
    ]
    num_kernels = len({part.kernel for part in parts if part.kernel})
    return judge_parts(
        NAME, parts,
        passed=(
            f"{num_kernels} {'kernel gives' if num_kernels == 1 else 'kernels give'} the reference's outputs and "
            f"gradients{'; and ' if identities else ''}{'; '.join(identities)}."
        ),
        failed=lambda bad: (
            f"A declaration is wrong by {bad.figure:.2g} (allowed {bad.bound:.2g}): {bad.name}. Correct or remove it."
            if bad.note == DECLARATION
            else f"Two ways to compute the same differ by {bad.figure:.2g} (allowed {bad.bound:.2g}): {bad.name}."
        ),
        where=lambda bad: (find_stage_of_blocks(subject) or f"kernel {bad.kernel}") if bad.kernel else bad.note,
    )  # fmt: skip


def _compare_kernels(subject: Subject) -> Iterator[FindingPart]:
    """Compare every kernel with the reference: in both precisions, under all masks, with dropout, and wider heads."""
    ways = [Mode(False, dtype=dtype, mask=mask) for dtype in (torch.float64, torch.float32) for mask in MASKS]
    ways.append(Mode(False, dtype=torch.float64, dropout=0.2, training=True))
    yield from _compare(subject, ways, "")
    # A stage that adds x to the values needs both to have one width.
    wider = subject.resize(64, 64 if subject.mechanism.values else 48)
    yield from _compare(wider, [Mode(False)], f", head_dim {wider.head_dim}")
    split = [Mode(False, dtype=torch.float64), Mode(False, dtype=torch.float64, mask="pairs"), Mode(False, mask="keys")]
    many = subject.resize(num_heads=MANY_HEADS)
    yield from _compare(many, split, f", {SEVERAL} sequences of {MANY_HEADS} heads", SEVERAL)
    for kernel, length in SPANS.items():
        yield from _compare(subject, [Mode(False)], f", {length} tokens", length=length, only=kernel)


def _compare(
    subject: Subject, ways: list[Mode], suffix: str, batch: int = 1, length: int = LONG, only: str | None = None
) -> Iterator[FindingPart]:
    """Compare every kernel that can compute it with the reference, in some modes; or one kernel only."""
    # Several kernels are compared with one result of the reference, which takes the longest.
    compute = functools.lru_cache(maxsize=2)(functools.partial(_compute, subject, batch=batch, length=length))
    for mode in subject.modes(*ways):
        if mode.kernel == REFERENCE or only not in (None, mode.kernel):
            continue
        exact = dataclasses.replace(mode, kernel=REFERENCE)
        theirs = compute(exact, mode.dtype)
        difference = _measure_distance(_compute(subject, mode, mode.dtype, batch, length), theirs)
        bound = tolerance(torch.ones(1, dtype=mode.dtype))
        if mode.dtype == torch.float32:
            # If scores are large, fp32 loses digits: a kernel may lose a few times what the reference loses.
            truth = compute(dataclasses.replace(exact, dtype=torch.float64), mode.dtype)
            bound += 16 * _measure_distance(theirs, truth)
        yield FindingPart(f"is the reference, {mode}{suffix}", difference, bound, "", mode.kernel)


def _measure_distance(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Return the largest difference of any result, relative to the largest number of that result."""
    # A gradient that is tiny compared with the others, as along a unit vector, is rounding.
    floor = max(1e-30, 1e-3 * largest(peak(b) for b in theirs))
    return largest(peak(a - b) / max(peak(b), floor) for a, b in zip(ours, theirs, strict=True))


def _compute(subject: Subject, mode: Mode, drawn: torch.dtype, batch: int = 1, length: int = LONG) -> list[Tensor]:
    """Return the output and the gradients of all inputs and parameters; `drawn` is the precision of the inputs."""
    inputs = {name: t.to(mode.dtype) for name, t in subject.inputs(batch, length, drawn).items()}
    leaves = {name: t.requires_grad_() for name, t in inputs.items()}
    learned = {name: p.requires_grad_() for name, p in subject.cast_parameters(mode.dtype).items()}
    out = dataclasses.replace(subject, parameters=learned).attend(leaves, mode)
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out.dtype)
    return [out, *compute_gradients(out, [*leaves.values(), *learned.values()], cotangent)]


def _check_identities(subject: Subject) -> Iterator[FindingPart]:
    mechanism = subject.mechanism
    # Weights that depend on the layer's input may depend on tokens between a query and a key, which removal changes.
    if "x" not in mechanism.weights.inputs:
        yield _check_hidden_pairs(subject)
    for stage in mechanism.values:
        others = [other for other in mechanism.values if other is not stage and other.target == stage.target]
        # After another stage on the same tensor, the identity W + αI does not hold.
        if not others:
            yield from _check_value_identities(subject, stage)
    sums_to_one = mechanism.weights.is_softmax and not mechanism.weights.has_sink
    # A mask by scores chooses among later keys too if they are masked after the weights.
    has_row_masks = any(stage.is_by_row for stage in mechanism.mask)
    mixes_pairs = mechanism.heads is not None and mechanism.heads.mixes_pairs
    # A score that reads which pairs are visible sees others if they are masked after the weights.
    reads_mask = "visible" in (*mechanism.score.inputs, *mechanism.weights.inputs)
    is_chosen_apart = not has_row_masks and not mixes_pairs and not reads_mask
    if sums_to_one and mechanism.weights.divide == 1 and True in subject.causalities and is_chosen_apart:
        yield _check_renormalized(subject)
    if mechanism.share.what in ("qk", "qkv"):
        yield _check_symmetry(subject)


def _check_value_identities(subject: Subject, stage: Value) -> Iterator[FindingPart]:
    """Compare a stage's neutral variant with no stage at all, and its identity variant with a projection of W + αI."""
    neutral, identity = stage.neutral(), stage.identity()
    if neutral is None and identity is None:
        return
    draw = torch.Generator().manual_seed(subject.seed)
    inputs = subject.inputs(1, SHORT, torch.float64)
    x, first, target = inputs["x"], inputs["first"], stage.target
    others = tuple(other for other in subject.mechanism.values if other is not stage)
    bare = dataclasses.replace(subject.mechanism, values=others)

    def run(mechanism: Mechanism, changed: Tensor) -> Tensor:
        t = {**{name: inputs[name] for name in ("q", "k", "v")}, target: changed}
        names = mechanism.parameters(subject.num_heads, subject.head_dim)
        learned = {name: p.double() for name, p in subject.parameters.items() if name in names}
        ids = subject.read_tokens(inputs)
        return attend(t["q"], t["k"], t["v"], mechanism, parameters=learned, x=x, first=first, tokens=ids)

    def replace_stage(new: Value) -> Mechanism:
        values = tuple(new if other is stage else other for other in subject.mechanism.values)
        return dataclasses.replace(subject.mechanism, values=values)

    if neutral is not None:
        difference = peak(run(replace_stage(neutral), inputs[target]) - run(bare, inputs[target]))
        yield FindingPart(f"α = 0 is the mechanism without {stage.name}", difference, 0.0, f"'{stage}'")
    if identity is not None and stage.strength is not None:
        identity_matrix = torch.eye(subject.head_dim, dtype=torch.float64)
        W = torch.randn(identity_matrix.shape, generator=draw, dtype=torch.float64)
        added = run(replace_stage(identity), x @ W)
        folded = run(bare, x @ (W + stage.strength * identity_matrix))
        bound = tolerance(folded)
        yield FindingPart("activation=identity is W + αI", peak(added - folded), bound, f"'{stage}'")


def _check_renormalized(subject: Subject) -> FindingPart:
    """Compare weights masked after softmax and divided by their sum with weights masked before it."""
    inputs = subject.inputs(1, SHORT, torch.float64)
    learned = subject.cast_parameters(torch.float64)
    after, before = (
        weights(
            inputs["q"], inputs["k"], dataclasses.replace(subject.mechanism, causal=CausalMask(where)),
            causal=True, parameters=learned, x=inputs.get("x"),
        )
        for where in ("after", "before")
    )  # fmt: skip
    sums = after.sum(-1, keepdim=True)
    # A row whose visible weights all underflow cannot be renormalised.
    difference = peak((after / sums - before)[sums[..., 0] > 1e-250])
    name = "of this weights stage, masking after it, once renormalised, is masking before it"
    return FindingPart(name, difference, tolerance(before), f"'{subject.mechanism.weights}'")


def _check_symmetry(subject: Subject) -> FindingPart:
    """Measure how far the scores are from symmetric if queries and keys are equal."""
    score = subject.mechanism.score
    k = subject.inputs(1, SHORT, torch.float64)["k"]
    scores = subject.scores(k, k)
    difference = peak(scores - scores.mT)
    if not score.is_symmetric:
        return FindingPart("how far scores are from symmetric", difference, None, f"'{score}' need not be symmetric")
    return FindingPart("scores are symmetric", difference, tolerance(scores), f"'{score}'")


def _check_hidden_pairs(subject: Subject) -> FindingPart:
    """Compare the weights of each row with those that its visible keys have if the forbidden ones are removed.

    They differ for a weights stage that includes forbidden pairs in what it normalises by.
    """
    inputs, learned = subject.inputs(1, SHORT, torch.float64), subject.cast_parameters(torch.float64)
    # Causal as well, so that the first row sees a single key, and log n is 0.
    pairs = draw_mask("pairs", SHORT, SHORT) & torch.ones(SHORT, SHORT, dtype=torch.bool).tril()
    call, _ = prepare(
        inputs["q"], inputs["k"], inputs["v"], subject.mechanism, mask=pairs, parameters=learned,
        x=inputs.get("x"), first=inputs.get("first"), tokens=subject.read_tokens(inputs),
    )  # fmt: skip
    score = call.mechanism.score
    scores = score(call.q, call.k, call.params_of(score), **call.gather_needs(score, pairs)).detach()
    masked = reference.weigh(call, fill_standins(scores, pairs, None), pairs).detach()
    differences, bounds = [], []
    for i in range(SHORT):
        keys = pairs[0, 0, i].nonzero()[:, 0]
        alone = _weigh_visible(call, scores[:, :, i : i + 1, keys], i, keys)
        differences.append(peak(masked[:, :, i : i + 1, keys] - alone))
        bounds.append(tolerance(alone))
    note = f"'{call.mechanism.weights}' and the pairs it may not see"
    return FindingPart(
        "under a mask of pairs, a row's weights are those of its visible keys alone",
        largest(differences),
        largest(bounds),
        note,
    )


def _weigh_visible(call: Call, scores: Tensor, row: int, keys: Tensor) -> Tensor:
    """Turn the scores of one row into weights, as if there were no keys but the visible ones."""
    stage, positions = call.mechanism.weights, call.positions
    if positions is not None:
        positions = Positions(positions.queries[..., row : row + 1], positions.keys[..., keys])
    visible = torch.ones_like(scores, dtype=torch.bool)
    needed = dataclasses.replace(call, positions=positions).gather_needs(stage, visible)
    n = torch.full((1, 1, 1, 1), len(keys), dtype=scores.dtype)
    return stage(scores, n, call.params_of(stage), **needed).detach()
