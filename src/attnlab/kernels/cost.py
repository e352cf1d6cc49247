"""The cost of a kernel by counting: operations of a forward pass, and bytes of memory beyond inputs and output."""

from dataclasses import dataclass

from . import banded
from .band import Band
from .call import Request, at_least_float
from .rowwise import block_size
from .running import CHUNK
from .tiled import stores_weights
from .tiles import Tiling


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
        pairs = groups * Band.of(request).num_pairs
        return Cost(pairs * 2.0 * width, groups * request.num_queries * request.value_dim * item, 1)
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
    return Cost(computed * 2.0 * width, work * item, 2)
