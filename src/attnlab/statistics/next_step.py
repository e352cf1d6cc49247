"""What would decide comparisons that are INCONCLUSIVE, in one sentence for all of a report."""

import math
from collections.abc import Mapping

from .comparison import Comparison
from .formatting import show, show_count, signed
from .planning import POWERS
from .verdict import INCONCLUSIVE, SAME


def explain_next_step(comparisons: Mapping[str, Comparison]) -> tuple[str, ...]:
    """Say how many seeds would decide, for the comparison that needs the most; empty if none is INCONCLUSIVE.

    comparisons: by the name that the sentence uses.
    """
    undecided = {name: one for name, one in comparisons.items() if one.decision.outcome == INCONCLUSIVE}
    needed = {name: one.plan.seeds[POWERS[0]] for name, one in undecided.items()}
    needed = {name: num for name, num in needed.items() if not math.isnan(num)}
    if not needed:
        return ()
    name = max(needed, key=lambda key: needed[key])
    one, unit = undecided[name], undecided[name].question.unit
    smallest, plan = one.question.shown_smallest, one.plan
    subject = f"to decide what is INCONCLUSIVE ({len(undecided)} of {len(comparisons)} comparisons)"
    if math.isinf(needed[name]):
        return (
            f"{subject}: no practical number of seeds finds a difference of {smallest} in {name}; evaluate more "
            "examples, or name a larger smallest difference",
        )
    below = abs(one.difference) < one.question.smallest
    measured = f"the difference there is {signed(one.difference)}{unit} now"
    end = f"{measured}, less than that, so they may also end with {SAME}" if below else measured
    return (
        f"{subject}: {show_count(needed[name])} seeds per arm, instead of {plan.present}, find a true difference of "
        f"{smallest} with {POWERS[0]:.0%} power in {name}, which needs the most (SD of a seed's difference "
        f"{show(plan.sd)}{unit}, at most {show(plan.sd_bound)}{unit}); {end}",
    )
