"""By how much intervals and p-values are wider than those of a plain t test, in one sentence for all of a report."""

from collections.abc import Mapping

from .comparison import Comparison
from .formatting import describe_widening

MAX_NAMED = 6
"""Comparisons whose factors are named; `Comparison.record()` has those of all."""


def explain_widening(comparisons: Mapping[str, Comparison]) -> tuple[str, ...]:
    """Say once which comparisons are widened, by which factor, and why; empty if none is.

    comparisons: by the name that the sentence uses.
    """
    widened = {name: one for name, one in comparisons.items() if one.is_widened}
    if not widened:
        return ()
    shown = [f"{name} {describe_widening(one)}" for name, one in list(widened.items())[:MAX_NAMED]]
    more = f"; and {len(widened) - MAX_NAMED} more" if len(widened) > MAX_NAMED else ""
    return (
        "few or skewed scores can hide a long tail, so intervals and p are wider than those of a plain t test "
        f"(docs/statistics.md, Skewness): {'; '.join(shown)}{more}",
    )
