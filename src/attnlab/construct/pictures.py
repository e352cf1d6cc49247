"""Pictures of constructions: the weights as bars, and how they change with one number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attnlab.charts import Spec
from attnlab.charts.panels import Bars, CurvePanel, Panel, Points, draw

from .problem import ARGMAX, SOFTMAX
from .words import name_key, name_keys, short

if TYPE_CHECKING:
    from . import ArgmaxResult, Extraction, Focus, Placement, Strength

MAX_PLACES = 12
"""How many keys can be named in a plane."""
MAX_BARS, MAX_LINES = 10, 5
OTHERS = "all others"
STEPS = 61
"""How many points a curve has."""

Place = tuple[float, float]
Lines = dict[str, list[Place]]


def draw_focus(result: Focus) -> Spec:
    """Draw the weights of the constructed and the naive query, and how they change with the strength."""
    assert result.weights is not None
    names, is_one = name_keys(result.subset), len(result.subset) == 1
    naive, constructed = f"q = {names}" if is_one else "q = the mean of the keys", "constructed q"
    groups = {naive: result.naive, constructed: result.weights}
    panels: list[Panel] = [_make_bars(groups, result.subset)]
    if result.strength:
        length = float(result.naive_query.norm())
        first, last = result.strength / 30, _find_last_strength(result)
        if length:
            panels.append(_draw_strengths(result, f"{naive}, made stronger", result.naive_query / length, first, last))
        panels.append(_draw_strengths(result, f"{constructed}, made stronger", result.direction, first, last))
    return draw(panels, f"{'Selecting' if is_one else 'Averaging'} {names}", str(result))


def _draw_strengths(result: Focus, title: str, direction: Tensor, first: float, last: float) -> CurvePanel:
    xs = torch.logspace(math.log10(first), math.log10(last), STEPS, dtype=torch.float64)
    lines = _make_lines(xs, result.problem.weights(torch.outer(xs, direction)), result.subset)
    marks = {f"strength {short(result.strength)}": result.strength} if direction is result.direction else {}
    return CurvePanel(title, lines, "strength", marks=marks, faint=[OTHERS], is_logarithmic=True)


def _find_last_strength(result: Focus) -> float:
    """Return the largest strength that is drawn: where the naive query selects a single key, if it does."""
    keys, naive = result.problem.keys[list(result.subset)], result.naive_query
    scores = keys @ (naive / max(float(naive.norm()), 1e-300))
    spread = float(scores.max() - scores.min()) * result.problem.scale
    collapse = 10 / spread if spread > 0 else 0.0
    return result.strength * min(max(collapse / result.strength, 30.0), 1e5)


def draw_proof(result: Focus) -> Spec:
    """Draw why there is no query: the combination of other keys, and the positions of the keys."""
    assert result.combination is not None
    assert result.affine is not None
    verb = "selects" if len(result.subset) == 1 else "averages"
    plane = _project_on_plane(result.problem.keys)
    used = [int(i) for i in result.combination.nonzero()[:, 0]]
    shown = [*result.subset, *used][:MAX_BARS]
    places = {name_key(i): place for i, place in enumerate(plane) if i in shown or len(plane) <= MAX_PLACES}
    both, strong = result.affine + result.combination, [name_key(i) for i in result.subset]
    labels, axis = [name_key(i) for i in shown], "part of the combination"
    heights = {axis: [float(both[i]) for i in shown]}
    bars = Bars("Two combinations that are one point", labels, heights, axis, strong=strong)
    hulls = [_find_hull([plane[i] for i in group]) for group in (used, result.subset)]
    points = Points("The keys in the plane of their widest spread", places, strong, hulls)
    verdict = "No query" if result.feasible is False else "Perhaps no query"
    return draw([bars, points], f"{verdict} {verb} {name_keys(result.subset)}", str(result))


def draw_strength(result: Strength) -> Spec:
    """Draw the weights at S = 1 and at S, and how they grow."""
    problem = result.problem
    pair = problem.keys[0] + problem.keys[1]
    groups = {"q = k0 + k1": problem.weights(pair), f"q = {short(float(result))}·(k0 + k1)": result.weights}
    bars = _make_bars(groups, (0, 1))
    xs = torch.linspace(min(0.0, 2 * float(result)), max(2 * float(result), 2.0), STEPS, dtype=torch.float64)
    lines = _make_lines(xs, problem.weights(torch.outer(xs, pair)), (0, 1))
    marks = {f"S = {short(float(result))}": float(result)}
    curves = CurvePanel("q = S·(k0 + k1)", lines, "strength S", marks=marks, faint=[OTHERS])
    title = f"Averaging two of {result.num_keys} orthonormal keys, head_dim {result.head_dim}"
    return draw([bars, curves], title, str(result))


def draw_argmax(result: ArgmaxResult) -> Spec:
    """Draw the weights of argmax and softmax, and one weight as the query moves towards the next best key."""
    problem = result.problem
    groups = {"softmax": result.softmax_weights, "argmax": result.weights}
    panels: list[Panel] = [_make_bars(groups, (result.index,))]
    rest = [i for i in range(problem.num_keys) if i != result.index]
    if rest:
        next_best = max(rest, key=lambda i: float(problem.scores(result.query)[i]))
        panels.append(_draw_transition(result, next_best))
    return draw(panels, f"Argmax selects {name_key(result.index)}, and passes no gradient on", str(result))


def _draw_transition(result: ArgmaxResult, next_best: int) -> CurvePanel:
    problem, names = result.problem, (name_key(result.index), name_key(next_best))
    step = problem.keys[next_best] - problem.keys[result.index]
    size = float(step @ step) or 1.0
    middle = -float(result.query @ step) / size
    half = max(abs(middle) * 1.2, 4 / (problem.scale * size))
    xs = torch.linspace(middle - half, middle + half, 4 * STEPS, dtype=torch.float64)
    queries = result.query + torch.outer(xs, step)
    lines = {
        name: _list_points(xs, problem.weights(queries, mechanism)[:, result.index])
        for name, mechanism in (("softmax: a slope", SOFTMAX), ("argmax: a step", ARGMAX))
    }
    title = f"Weight of {names[0]} as q moves towards {names[1]}"
    return CurvePanel(title, lines, f"t in q + t·({names[1]} − {names[0]})", marks={"q": 0.0})


def draw_placement(result: Placement) -> Spec:
    """Draw the weights before and after, and how they change with the length of the new key along the query."""
    problem, new = result.problem, result.problem.num_keys - 1
    before = torch.cat([result.before, torch.zeros(1, dtype=torch.float64)])
    groups = {"before": before, "with the new key": result.weights}
    panels: list[Panel] = [_make_bars(groups, result.subset, new)]
    norm, length = float(result.key.norm()), float(result.query.norm())
    if length:
        signed = norm if float(result.query @ result.key) >= 0 else -norm
        xs = torch.linspace(min(0.0, 2 * signed), 2 * max(norm, result.least_norm), STEPS, dtype=torch.float64)
        old = problem.scores(result.query)[:-1].expand(STEPS, -1)
        weights = torch.cat([old, xs[:, None] * length * problem.scale], dim=1).softmax(dim=1)
        lines = _make_lines(xs, weights, result.subset, new)
        title, marks = "The new key, made longer along the query", {f"norm {short(norm)}": signed}
        panels.append(CurvePanel(title, lines, "length of the new key along the query", marks=marks, faint=[OTHERS]))
    does = f"averaged with {name_keys(result.subset[:-1])}" if result.goal == "average" else "returned alone"
    return draw(panels, f"A new key, to be {does}", str(result))


def draw_extraction(result: Extraction) -> Spec:
    """Draw the coordinates of v_a, the mixture and the output, and the largest error at every angle."""
    shown = range(min(len(result.value_a), MAX_BARS))
    vectors = {"v_a": result.value_a, "(v_a + v_b)/2": result.mixture, "M(v_a + v_b)/2": result.output}
    title = "Coordinates" if len(shown) == len(result.value_a) else f"The first {len(shown)} coordinates"
    heights = {name: [float(vector[i]) for i in shown] for name, vector in vectors.items()}
    bars = Bars(title, [f"x{i}" for i in shown], heights, "coordinate")
    degrees = torch.linspace(0, 90, STEPS, dtype=torch.float64)
    angle = float(result.angles[0]) if len(result.angles) else 90.0
    lines = {"cos θ": _list_points(degrees, torch.cos(torch.deg2rad(degrees)))}
    curves = CurvePanel(
        "Largest error for a v_b of norm 1", lines, "smallest angle θ between the subspaces, degrees", "error",
        {f"{angle:.0f}°: {short(result.largest_error)}": angle},
    )  # fmt: skip
    return draw([bars, curves], "Taking v_a out of (v_a + v_b)/2", str(result))


def _make_bars(groups: Mapping[str, Tensor], subset: Sequence[int], new: int | None = None) -> Bars:
    """Show each query's weights of a subset and of the other keys with the largest weights; the rest are one bar."""
    shown, left = _choose_keys(list(groups.values())[-1], subset, MAX_BARS)
    labels = ["new" if i == new else name_key(i) for i in shown] + ([f"{len(left)} more"] if left else [])
    heights = {
        name: [float(weights[i]) for i in shown] + ([float(weights[left].sum())] if left else [])
        for name, weights in groups.items()
    }
    return Bars("Weight of each key", labels, heights)


def _make_lines(xs: Tensor, weights: Tensor, subset: Sequence[int], new: int | None = None) -> Lines:
    """Return the weights [x n] of a subset as curves by name, and the sum of all others as OTHERS."""
    shown = list(subset)[:MAX_LINES]
    lines = {"new" if i == new else name_key(i): _list_points(xs, weights[:, i]) for i in shown}
    rest = [i for i in range(weights.shape[1]) if i not in shown]
    return lines | ({OTHERS: _list_points(xs, weights[:, rest].sum(dim=1))} if rest else {})


def _choose_keys(weights: Tensor, subset: Sequence[int], most: int) -> tuple[list[int], list[int]]:
    """Return the keys to show separately: the subset and those with the largest weights; and the other keys."""
    if len(weights) <= most:
        return list(range(len(weights))), []
    rest = [i for i in weights.argsort(descending=True, stable=True).tolist() if i not in subset]
    shown = sorted([*subset, *rest][: most - 1])
    return shown, [i for i in range(len(weights)) if i not in shown]


def _list_points(xs: Tensor, ys: Tensor) -> list[Place]:
    return [(float(f"{x:.5g}"), float(f"{y:.5g}")) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]


def _project_on_plane(keys: Tensor) -> list[Place]:
    """Return the positions of keys in the plane of their largest variance."""
    centred = keys - keys.mean(dim=0)
    # Divided by the largest coordinate, so that squares neither overflow nor underflow.
    centred = centred / max(float(centred.abs().max()), 1e-300)
    axes = torch.linalg.svd(centred, full_matrices=True)[2][:2]
    spots = (centred @ axes.T).tolist()
    return [(float(spot[0]), float(spot[1]) if len(spot) > 1 else 0.0) for spot in spots]


def _find_hull(places: Sequence[Place]) -> list[Place]:
    """Return the corners of the convex hull of some points, in order around it."""
    ordered = sorted(set(places))
    if len(ordered) < 3:
        return ordered
    lower, upper = _find_side(ordered), _find_side(ordered[::-1])
    return lower[:-1] + upper[:-1]


def _find_side(ordered: Sequence[Place]) -> list[Place]:
    """Return one side of the hull: the corners at which the path from the first point to the last turns left."""
    chain: list[Place] = []
    for x, y in ordered:
        while len(chain) > 1:
            (x1, y1), (x2, y2) = chain[-2:]
            if (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain
