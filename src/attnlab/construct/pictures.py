"""What constructions look like: the weights as bars, and what happens to them as one number grows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlab.charts import Spec
from attnlab.charts.panels import Bars, CurvePanel, Panel, Points, draw

from .panes import MOST_BARS, OTHERS, STEPS, hull_of, points_of, principal_plane, weight_bars, weight_lines
from .problem import ARGMAX, SOFTMAX
from .words import name_key, name_keys, short

if TYPE_CHECKING:
    from .argmax import ArgmaxResult
    from .extraction import Extraction
    from .focus import Focus
    from .placement import Placement
    from .strength import Strength

MOST_PLACES = 12
"""How many keys can be named in a plane."""


def draw_focus(found: Focus) -> Spec:
    """Draw the constructed query beside the naive one: the weights of both, and of both as they grow stronger."""
    assert found.weights is not None
    names, is_one = name_keys(found.subset), len(found.subset) == 1
    naive, constructed = f"q = {names}" if is_one else "q = the mean of the keys", "constructed q"
    groups = {naive: found.naive, constructed: found.weights}
    panels: list[Panel] = [weight_bars(groups, found.subset, "Weight of each key")]
    if found.strength:
        length = float(found.naive_query.norm())
        first, last = found.strength / 30, strongest(found)
        if length:
            panels.append(_strengthened(found, f"{naive}, made stronger", found.naive_query / length, first, last))
        panels.append(_strengthened(found, f"{constructed}, made stronger", found.direction, first, last))
    return draw(panels, f"{'Selecting' if is_one else 'Averaging'} {names}", str(found))


def _strengthened(found: Focus, title: str, direction: Tensor, first: float, last: float) -> CurvePanel:
    xs = torch.logspace(math.log10(first), math.log10(last), STEPS, dtype=torch.float64)
    lines = weight_lines(xs, found.problem.weights(torch.outer(xs, direction)), found.subset)
    marks = {f"strength {short(found.strength)}": found.strength} if direction is found.direction else {}
    return CurvePanel(title, lines, "strength", marks=marks, faint=[OTHERS], is_logarithmic=True)


def strongest(found: Focus) -> float:
    """Return the strength at which a picture ends: where the naive query has left all but one key, if it does."""
    keys, naive = found.problem.keys[list(found.subset)], found.naive_query
    scores = keys @ (naive / max(float(naive.norm()), 1e-300))
    spread = float(scores.max() - scores.min()) * found.problem.scale
    collapse = 10 / spread if spread > 0 else 0.0
    return found.strength * min(max(collapse / found.strength, 30.0), 1e5)


def draw_proof(found: Focus) -> Spec:
    """Draw why there is no query: the combination of other keys, and where the keys lie."""
    assert found.combination is not None
    assert found.affine is not None
    verb = "selects" if len(found.subset) == 1 else "averages"
    plane = principal_plane(found.problem.keys)
    used = [int(i) for i in found.combination.nonzero()[:, 0]]
    shown = [*found.subset, *used][:MOST_BARS]
    places = {name_key(i): place for i, place in enumerate(plane) if i in shown or len(plane) <= MOST_PLACES}
    both, strong = found.affine + found.combination, [name_key(i) for i in found.subset]
    bars = Bars(
        "Two combinations that are one point",
        [name_key(i) for i in shown],
        {"part of the combination": [float(both[i]) for i in shown]},
        axis="part of the combination",
        strong=strong,
    )
    hulls = [hull_of([plane[i] for i in group]) for group in (used, found.subset)]
    points = Points("The keys in the plane of their widest spread", places, strong, hulls)
    verdict = "No query" if found.feasible is False else "Perhaps no query"
    return draw([bars, points], f"{verdict} {verb} {name_keys(found.subset)}", str(found))


def draw_strength(found: Strength) -> Spec:
    """Draw the weights at S = 1 and at S, and how they grow."""
    problem = found.problem
    pair = problem.keys[0] + problem.keys[1]
    groups = {"q = k0 + k1": problem.weights(pair), f"q = {short(float(found))}·(k0 + k1)": found.weights}
    bars = weight_bars(groups, (0, 1), "Weight of each key")
    xs = torch.linspace(min(0.0, 2 * float(found)), max(2 * float(found), 2.0), STEPS, dtype=torch.float64)
    lines = weight_lines(xs, problem.weights(torch.outer(xs, pair)), (0, 1))
    marks = {f"S = {short(float(found))}": float(found)}
    curves = CurvePanel("q = S·(k0 + k1)", lines, "strength S", marks=marks, faint=[OTHERS])
    return draw(
        [bars, curves], f"Averaging two of {found.num_keys} orthonormal keys, head_dim {found.head_dim}", str(found)
    )


def draw_argmax(found: ArgmaxResult) -> Spec:
    """Draw argmax beside softmax: the weights, and one weight as the query moves towards the next best key."""
    problem = found.problem
    groups = {"softmax": found.softmax_weights, "argmax": found.weights}
    panels: list[Panel] = [weight_bars(groups, (found.index,), "Weight of each key")]
    rest = [i for i in range(problem.num_keys) if i != found.index]
    if rest:
        next_best = max(rest, key=lambda i: float(problem.scores(found.query)[i]))
        panels.append(_moving(found, next_best))
    return draw(panels, f"Argmax selects {name_key(found.index)}, and passes no gradient on", str(found))


def _moving(found: ArgmaxResult, next_best: int) -> CurvePanel:
    """Show the selected key's weight along the line on which the next best key takes over, at the middle."""
    problem, names = found.problem, (name_key(found.index), name_key(next_best))
    step = problem.keys[next_best] - problem.keys[found.index]
    size = float(step @ step) or 1.0
    middle = -float(found.query @ step) / size
    half = max(abs(middle) * 1.2, 4 / (problem.scale * size))
    xs = torch.linspace(middle - half, middle + half, 4 * STEPS, dtype=torch.float64)
    queries = found.query + torch.outer(xs, step)
    lines = {
        name: points_of(xs, problem.weights(queries, mechanism)[:, found.index])
        for name, mechanism in (("softmax: a slope", SOFTMAX), ("argmax: a step", ARGMAX))
    }
    title = f"Weight of {names[0]} as q moves towards {names[1]}"
    return CurvePanel(title, lines, f"t in q + t·({names[1]} − {names[0]})", marks={"q": 0.0})


def draw_placement(found: Placement) -> Spec:
    """Draw the weights before and after, and how they change with the new key's length along the query."""
    problem, new = found.problem, found.problem.num_keys - 1
    before = torch.cat([found.before, torch.zeros(1, dtype=torch.float64)])
    bars = weight_bars(
        {"before": before, "with the new key": found.weights}, found.subset, "Weight of each key", {new: "new"}
    )
    panels: list[Panel] = [bars]
    norm, length = float(found.key.norm()), float(found.query.norm())
    if length:
        signed = norm if float(found.query @ found.key) >= 0 else -norm
        xs = torch.linspace(min(0.0, 2 * signed), 2 * max(norm, found.least_norm), STEPS, dtype=torch.float64)
        old = problem.scores(found.query)[:-1].expand(STEPS, -1)
        weights = torch.cat([old, xs[:, None] * length * problem.scale], dim=1).softmax(dim=1)
        lines = weight_lines(xs, weights, found.subset, {new: "new"})
        title, marks = "The new key, made longer along the query", {f"norm {short(norm)}": signed}
        panels.append(CurvePanel(title, lines, "length of the new key along the query", marks=marks, faint=[OTHERS]))
    does = f"averaged with {name_keys(found.subset[:-1])}" if found.goal == "average" else "returned alone"
    return draw(panels, f"A new key, to be {does}", str(found))


def draw_extraction(found: Extraction) -> Spec:
    """Draw the coordinates of v_a, the mixture and what comes out, and the largest error at every angle."""
    shown = range(min(len(found.value_a), MOST_BARS))
    vectors = {"v_a": found.value_a, "(v_a + v_b)/2": found.mixture, "M(v_a + v_b)/2": found.output}
    bars = Bars(
        "Coordinates" if len(shown) == len(found.value_a) else f"The first {len(shown)} coordinates",
        [f"x{i}" for i in shown],
        {name: [float(vector[i]) for i in shown] for name, vector in vectors.items()},
        axis="coordinate",
    )
    degrees = torch.linspace(0, 90, STEPS, dtype=torch.float64)
    angle = float(found.angles[0]) if len(found.angles) else 90.0
    lines = {"cos θ": points_of(degrees, torch.cos(torch.deg2rad(degrees)))}
    curves = CurvePanel(
        "Largest error for a v_b of norm 1", lines, "smallest angle θ between the subspaces, degrees", "error",
        {f"{angle:.0f}°: {short(found.largest_error)}": angle},
    )  # fmt: skip
    return draw([bars, curves], "Taking v_a out of (v_a + v_b)/2", str(found))
