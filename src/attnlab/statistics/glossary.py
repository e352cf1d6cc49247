"""Where docs/statistics.md explains the words of a verdict: a heading for each, and its anchor."""

from __future__ import annotations

from attnlab.errors import StatisticsError

HEADINGS = (
    "NOT COMPARABLE", "STILL TRAINING", "AMONG RUNS THAT FINISHED", "BELOW YOUR THRESHOLD", "BY AT LEAST", "BETTER",
    "WORSE", "NO MEANINGFUL DIFFERENCE", "INCONCLUSIVE", "TOO FEW SEEDS", "NEITHER LEARNED THE TASK", "BOTH AT CEILING",
    "DEGENERATE", "LESS STABLE", "MORE STABLE", "STABILITY UNKNOWN", "CHANGED AFTER LOOKING", "UNDECLARED LOOK",
    "AS REGISTERED",
)  # fmt: skip
"""Every heading. Words may hold several; the first of these is the one that most needs to be explained."""


def verdict_anchor(words: str) -> str:
    """Return the anchor in docs/statistics.md that explains a verdict: 'better' for BETTER."""
    # What stands in parentheses is a number or a reason, which may hold any words.
    phrase = words.partition("(")[0]
    for heading in HEADINGS:
        if heading in phrase:
            return heading.lower().replace(" ", "-")
    raise StatisticsError(f"'{words}' are not the words of a verdict; docs/statistics.md has them all")
