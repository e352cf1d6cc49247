"""What an arm that sees the future is worth: its perplexity where it is fed nothing but the past."""

from __future__ import annotations

from collections.abc import Mapping

from .evidence import Evidence

SHOWN, HONEST = "perplexity", "honest_perplexity"


def honest_note(evidence: Evidence, arm: str, baseline: str, figure: str) -> str:
    """Set the honest figure of an arm beside the one it shows and the baseline's; say where there is none."""
    honest, shown = (known(evidence.values(arm, name)) for name in (HONEST, SHOWN))
    if not honest:
        return f"{figure} was measured with access to future tokens; this task has no leak-free figure"
    said = f"fed nothing but the past its perplexity is {mean(honest)}, not the {mean(shown, has_count=False)} it shows"
    other = known(evidence.values(baseline, HONEST)) or known(evidence.values(baseline, SHOWN))
    return f"{said}; the baseline's is {mean(other, has_count=False)}" if other else said


def known(values: Mapping[int, float | None]) -> list[float]:
    """Return the figures of the seeds that have one."""
    return [value for value in values.values() if value is not None]


def mean(values: list[float], *, has_count: bool = True) -> str:
    """Write the mean over seeds, and of how many."""
    written = f"{sum(values) / len(values):.4g}"
    return f"{written} (mean of {len(values)} seeds)" if has_count and len(values) > 1 else written
