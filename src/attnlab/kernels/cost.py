"""The cost of a kernel by counting: operations of a forward pass, and bytes of memory beyond inputs and output."""

from dataclasses import dataclass
from itertools import pairwise

import torch

from attnlab.mechanisms import Positions

from . import banded, rowwise
from .band import Band
from .call import Request, at_least_float
from .compat import CountResults
from .masks import call_mask, list_position_masks
from .rowwise import block_size
from .running import CHUNK
from .tiled import stores_weights
from .tiles import Tiling

SAMPLE = 64
"""The queries and keys with which a mask is tried, to count the bytes it needs for each pair."""

COUNT_BYTES = 8
"""The integers that torch makes of the booleans whose sum it takes."""


@dataclass(frozen=True)
class Cost:
    """Operations of one forward pass, bytes of work space, and the power of the length that time grows with."""

    operations: float
    work_bytes: int
    exponent: int

    def __str__(self) -> str:
        growth = "n" if self.exponent == 1 else f"n^{self.exponent}"
        work = f"{show_with_prefix(self.work_bytes)}B of work space"
        return f"{show_with_prefix(self.operations)} operations forward, {work}, time grows as {growth}"


def show_with_prefix(number: float) -> str:
    """Write a large number with a unit prefix."""
    for unit in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {unit}".rstrip() + ("" if unit else " ")
        number /= 1000
    return f"{number:.3g} T"


def estimate(request: Request, kernel: str) -> Cost:
    """Count the operations and the work space of a kernel."""
    groups = request.batch * request.num_heads
    pairs = groups * request.num_queries * request.num_keys
    width = request.head_dim + request.value_dim
    item = at_least_float(request.dtype).itemsize
    if kernel == "linear":
        product = request.head_dim * request.value_dim
        per_token = 4 * product + (2 * CHUNK * width if request.causal else 0)
        num_states = -(-request.num_keys // CHUNK) if request.causal else 1
        return Cost(groups * request.num_keys * per_token, groups * num_states * product * 2 * item, 1)
    if kernel == banded.NAME:
        num_pairs = Band.of(request).num_pairs
        work = groups * request.num_queries * request.value_dim * item
        if not all(mask.is_by_distance for mask in list_position_masks(request.mechanism)):
            # The blocks of a sequence have masks of their own.
            num_maps, own = _sample_masks(request)
            work = max(work, int(max(own, (1 + COUNT_BYTES) * num_maps) * num_pairs))
        return Cost(groups * num_pairs * 2.0 * width, work, 1)
    tiling = Tiling(request.batch, request.num_heads, request.num_queries, request.num_keys, request.causal)
    # The reference forms a vector for each pair of an additive or distance score.
    channels = (
        request.head_dim if request.mechanism.score.form not in (None, "dot", "cosine", "angle", "features") else 1
    )
    num_kept = pairs if stores_weights(request.mechanism, pairs) else 0
    work = {
        "reference": 2 * pairs * channels,
        "rowwise": 2 * min(block_size(), pairs * channels),
        "sdpa": groups * request.num_queries,
    }.get(kernel, tiling.largest + num_kept)
    computed = pairs if kernel == "reference" else tiling.num_pairs
    return Cost(computed * 2.0 * width, _add_mask(request, kernel, work * item), 2)


def _add_mask(request: Request, kernel: str, work_bytes: int) -> int:
    """Return the work space together with the booleans of a mask of pairs, and what is computed from them."""
    num_pairs = request.num_queries * request.num_keys
    num_maps, own = _sample_masks(request)
    if request.mask == "pairs":  # one map for all heads of a sequence
        num_maps = max(num_maps, 1) * request.batch
    per_pair = num_maps
    if num_maps and kernel != rowwise.NAME:  # the keys that each query sees are counted in all rows at once
        per_pair += COUNT_BYTES * num_maps + request.causal * (num_maps + 1)
    return int(max(own * num_pairs, work_bytes + per_pair * num_pairs))


def _sample_masks(request: Request) -> tuple[int, float]:
    """Return how many maps [q k] the masks of positions make, and the bytes for each pair that their calls need.

    A call is tried on a few positions; an operation needs its result and the one before.
    """
    num_maps, own = 0, 0.0
    places = torch.arange(SAMPLE)[None, None]
    for mask in list_position_masks(request.mechanism):
        with torch.no_grad(), CountResults() as results:
            pairs = call_mask(mask, Positions(places, places), (1, request.num_heads, SAMPLE, SAMPLE))
        num_maps = max(num_maps, pairs.shape[1])
        steps = [first + second for first, second in pairwise([0, *results.num_bytes])]
        own = max([own, *(step / SAMPLE**2 for step in steps)])
    return num_maps, own
