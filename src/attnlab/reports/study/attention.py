"""The attention of every arm on one held-out text: one head side by side, and all heads; or why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attnlab.charts import arm_maps
from attnlab.charts.arm_maps import ArmMaps
from attnlab.charts.head_grid import CONTINUING, is_continuing
from attnlab.studies.answers.attention_record import (
    AttentionRecord,
    HeadWeights,
    Weights,
    choose_runs,
    find_attention,
)
from attnlab.studies.answers.study_folder import Record

from .figures import ATTENTION, Figure, make_file_name

MAX_ARMS = 6
"""Arms side by side; the maps of all are below."""


@dataclass(frozen=True)
class AttentionSection:
    """A sentence about the maps, or why there are none; the charts; and the arms that have none, with the reason."""

    sentence: str
    head: Figure | None = None
    every_head: Figure | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> list[Figure]:
        """The charts."""
        return [figure for figure in (self.head, self.every_head) if figure is not None]


def make_attention_section(record: Record) -> AttentionSection | None:
    """Make the maps of a study that has ended; None before."""
    if not record.is_whole:
        return None
    found = find_attention(record)
    if isinstance(found, str):
        return AttentionSection(f"There are no maps: {found}.")
    if not found.arms:
        return AttentionSection(
            "There are no maps: no arm has attention weights that could be read.", missing=found.missing
        )
    run = choose_runs(record)[0]
    place, maps = f"{run.phase}, {run.size}", _list_maps(record, found)
    chosen, reason = choose_head(found.arms, record.design.baseline)
    name = make_file_name(ATTENTION, run.phase, run.size)
    title, having = f"Layer {chosen[0]}, head {chosen[1]}", [one for one in maps if one.has(chosen)]
    continuing = f" {CONTINUING}" if any(map(is_continuing, found.tokens)) else ""
    head = Figure(
        ATTENTION, name, f"{title} of every arm: {place}", reason + _name_others(maps, chosen) + continuing,
        lambda theme: arm_maps.draw_head(having[:MAX_ARMS], chosen, title, f"{place}, seed {run.seed}", theme),
    )  # fmt: skip
    every = Figure(
        ATTENTION, f"{name}-heads", f"Every head of every arm: {place}", "Rows are layers, columns are heads.",
        lambda theme: arm_maps.draw_heads(maps, "Every head", f"{place}, seed {run.seed}", theme),
    )  # fmt: skip
    sentence = (
        f"What the trained model of each arm attends to in one held-out example ({place}, seed {run.seed}): "
        f"“{join_tokens(found.tokens)}”. A row is a query, a column a key. Models of the same seed begin with the same "
        "weights, so heads with the same number can be compared."
    )
    return AttentionSection(sentence, head, every, found.missing)


def choose_head(arms: Mapping[str, HeadWeights], baseline: str) -> tuple[tuple[int, int], str]:
    """Return the head that differs most from the baseline's (the numbers of its layer and its own), and say so.

    Heads are compared in the layers that arms share with the baseline; the first head is returned if there are none.
    """
    base, others = arms.get(baseline), [weights for arm, weights in arms.items() if arm != baseline]
    first = (base or others[0]).layers[0], 0
    apart: dict[tuple[int, int], list[float]] = {}
    for pair in [(base, other) for other in others if base is not None]:
        for place, distance in _compute_distances(*pair).items():
            apart.setdefault(place, []).append(distance)
    means = {place: float(np.mean(distances)) for place, distances in apart.items()}
    if not means:
        return first, "The first head."
    chosen = max(means, key=means.__getitem__)
    if not means[chosen]:
        return first, f"No head differs from that of {baseline}; this is the first one."
    share = f"{100 * means[chosen]:.0f} % of a query’s attention goes elsewhere"
    return chosen, f"The head that differs most from {baseline}: on average over arms, {share}."


def _compute_distances(base: HeadWeights, other: HeadWeights) -> dict[tuple[int, int], float]:
    """Return half the sum of differences of a row, averaged over rows, of each head that both have, by its place.

    Rows are normalised.
    """
    layers, num_heads = sorted({*base.layers} & {*other.layers}), min(base.weights.shape[1], other.weights.shape[1])
    one, two = (
        _normalise(arm.weights[[arm.layers.index(layer) for layer in layers], :num_heads]) for arm in (base, other)
    )
    # Learned tokens of a prompt or prefix come first.
    num_queries, num_keys = (min(one.shape[axis], two.shape[axis]) for axis in (2, 3))
    difference = one[..., -num_queries:, -num_keys:] - two[..., -num_queries:, -num_keys:]
    distances = np.abs(difference).sum(-1).mean(-1) / 2
    return {(layer, head): float(distances[row, head]) for row, layer in enumerate(layers) for head in range(num_heads)}


def _normalise(weights: Weights) -> Weights:
    sums = np.abs(weights).sum(-1, keepdims=True)
    shares: Weights = weights / np.where(sums > 0, sums, 1)
    return shares


def _list_maps(record: Record, found: AttentionRecord) -> list[ArmMaps]:
    maps = []
    for arm, heads in found.arms.items():
        num_queries, num_keys = heads.weights.shape[2:]
        queries = _add_learned(found.tokens, num_queries, "prompt")
        keys = _add_learned(queries, num_keys, "prefix")
        name = f"{arm} (not comparable)" if arm in record.obstacles else arm
        maps.append(ArmMaps(name, heads.weights, heads.layers, queries, keys))
    return maps


def _add_learned(tokens: Sequence[str], num: int, kind: str) -> list[str]:
    return [*(f"({kind} {number})" for number in range(num - len(tokens))), *tokens]


def join_tokens(tokens: Sequence[str]) -> str:
    """Write tokens as a text; a piece that continues a word begins with a hyphen."""
    return "".join(one[1:] if is_continuing(one) else f" {one}" for one in tokens).strip()


def _name_others(maps: Sequence[ArmMaps], place: tuple[int, int]) -> str:
    """Name the arms without this head, and count those that are below for want of space."""
    without = [one.name for one in maps if not one.has(place)]
    missing = f" {', '.join(without)} {'has' if len(without) == 1 else 'have'} no such head." if without else ""
    num_more = len(maps) - len(without) - MAX_ARMS
    return missing + (f" {num_more} more arms are below." if num_more > 0 else "")
