"""What a kernel costs by counting: operations of a forward pass, and the bytes it holds beyond inputs and output."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.mechanisms.scores import Additive, Chebyshev, Euclidean, Manhattan, Minkowski

from .call import Request, at_least_float
from .rowwise import ELEMENTS
from .tiles import Tiling


@dataclass(frozen=True)
class Cost:
    """Operations of one forward pass, bytes of work space, and the power of the length that time grows with."""

    operations: float
    work_bytes: int
    exponent: int

    def __str__(self) -> str:
        growth = "n" if self.exponent == 1 else f"n^{self.exponent}"
        return (
            f"{readable(self.operations)} operations forward, {readable(self.work_bytes)}B of work space, "
            f"time grows as {growth}"
        )


def readable(number: float) -> str:
    """Write a large number with a unit prefix."""
    for unit in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {unit}".rstrip() + ("" if unit else " ")
        number /= 1000
    return f"{number:.3g} T"


def compares_vectors(request: Request) -> bool:
    """Tell whether the reference forms a vector for each pair."""
    score = request.mechanism.score
    return isinstance(score, Additive | Manhattan | Minkowski | Chebyshev | Euclidean)


def estimate(request: Request, kernel: str) -> Cost:
    """Count what a kernel does and holds."""
    groups = request.batch * request.num_heads
    tiling = Tiling(request.batch, request.num_heads, request.num_queries, request.num_keys, request.causal)
    width = request.head_dim + request.value_dim
    item = at_least_float(request.dtype).itemsize
    if kernel == "linear":
        per_token = 4 * request.head_dim * request.value_dim + (2 * 64 * width if request.causal else 0)
        states = request.head_dim * request.value_dim * (-(-request.num_keys // 64) if request.causal else 1)
        return Cost(groups * request.num_keys * per_token, groups * states * 2 * item, 1)
    is_cut = kernel not in ("reference",)
    pairs = (
        sum(t.num_groups * t.num_rows * t.horizon for t in tiling)
        if is_cut
        else groups * request.num_queries * request.num_keys
    )
    channels = request.head_dim if compares_vectors(request) else 1
    work = {
        "reference": groups * request.num_queries * request.num_keys * channels * 2,
        "rowwise": min(ELEMENTS, groups * request.num_queries * request.num_keys * channels) * 2,
        "sdpa": groups * request.num_queries,
    }.get(kernel, tiling.largest)
    return Cost(pairs * 2.0 * width, work * item, 2)
