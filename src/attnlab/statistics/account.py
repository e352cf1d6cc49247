"""A comparison as text and as plain values: the verdict first, and the scores of every seed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .question import ALPHA

if TYPE_CHECKING:
    from .comparison import Comparison

MOST_ROWS = 30
"""Seeds whose values are printed; the record has all."""
QUESTION = ("smallest", "higher_is_better", "looks", "scale", "floor", "ceiling", "late_gain")
"""Fields of the question that are recorded."""


def describe(comparison: Comparison) -> str:
    """Write a comparison as text: verdict, difference, further figures, and each seed."""
    lines = [
        f"{comparison.verdict}: {comparison.decision.reason}",
        f"{comparison.stability}: {comparison.known.steadiness.reason}",
        "",
        f"  difference   {_difference(comparison)}",
        f"  baseline     {comparison.known.baseline}",
        f"  variant      {comparison.known.variant}",
    ]
    exact = comparison.exact
    if exact is not None:
        lines.append(f"  exact        {show_p(exact.p)} ({exact.method}; n allows {exact.smallest:.2g} at the least)")
    lines.append(f"  skewness     {show(comparison.skewness)}")
    lines += [f"  effect       {_effect(comparison)}", f"  spread       {_spread(comparison)}"]
    lines += [f"  seeds        {_plan(comparison)}"]
    lines += [f"  note         {note}" for note in comparison.notes]
    return "\n".join([*lines, *_seeds(comparison)])


def _difference(comparison: Comparison) -> str:
    unit, family = comparison.question.unit, comparison.family
    low, high = comparison.interval
    shown = (
        f"{signed(comparison.difference)}{unit}, {percent(1 - comparison.level)} interval "
        f"[{signed(low)}, {signed(high)}]{unit}, {show_p(comparison.p)} ({comparison.method})"
    )
    if family is None or family.size == 1:
        return shown
    return f"{shown}, adjusted {show_p(family.adjusted)} among {family.size} ({family.method})"


def _effect(comparison: Comparison) -> str:
    effects = comparison.effects
    parts = [f"Hedges g {show(effects.hedges_g)}"]
    if not math.isnan(effects.probability):
        parts.append(f"P(variant seed > baseline seed) {effects.probability:.2f}")
    if effects.num_ahead is not None:
        parts.append(f"variant ahead in {effects.num_ahead} of {comparison.known.baseline.n} pairs")
        parts.append(f"ρ between arms {show(effects.rho)}")
    return ", ".join(parts)


def _spread(comparison: Comparison) -> str:
    spread = comparison.spread
    low, high = spread.ratio_interval
    return f"SD ratio {show(spread.ratio)} [{show(low)}, {show(high)}], {spread.assumption}"


def _plan(comparison: Comparison) -> str:
    plan, unit = comparison.plan, comparison.question.unit
    if math.isnan(plan.sd_bound):
        return "one seed shows no spread to plan from"
    if comparison.decision.is_decided:
        return f"decided with {plan.present} per arm; no more are needed"
    needed = " and ".join(f"{show_count(count)} ({power:.0%} power)" for power, count in plan.seeds.items())
    found = " and ".join(f"{show(effect)}{unit} ({power:.0%})" for power, effect in plan.detectable.items())
    shown = f"a difference of {plan.smallest:g}{unit} needs {needed} per arm in all; {plan.present} can detect {found}"
    if math.isnan(plan.more):
        return shown
    stays = f"if the difference stays at {signed(comparison.difference)}{unit}"
    return f"about {show_count(plan.more)} more per arm {stays}; {shown}"


def _seeds(comparison: Comparison) -> list[str]:
    if not comparison.per_seed:
        return []
    lines = ["", f"  {'seed':<8}{'baseline':>12}{'variant':>12}{'  difference' * comparison.known.paired}"]
    for seed, first, second in comparison.per_seed[:MOST_ROWS]:
        cells = [seed.ljust(8), *("failed" if score is None else f"{score:.6g}" for score in (first, second))]
        if comparison.known.paired:
            cells.append("" if first is None or second is None else _seed_difference(comparison, first, second))
        lines.append(f"  {cells[0]}{''.join(cell.rjust(12) for cell in cells[1:])}".rstrip())
    if len(comparison.per_seed) > MOST_ROWS:
        lines.append(f"  … and {len(comparison.per_seed) - MOST_ROWS} more")
    return lines


def _seed_difference(comparison: Comparison, baseline: float, variant: float) -> str:
    if comparison.question.scale == "linear":
        return signed(variant - baseline)
    return f"{signed(100 * (variant / baseline - 1))} %" if baseline > 0 else "–"


def record(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values; what is unknown or without limit is None."""
    exact, plan, known, question = comparison.exact, comparison.plan, comparison.known, comparison.question
    failures, steadiness = known.failures, known.steadiness
    values = {
        "verdict": comparison.verdict,
        "reason": comparison.decision.reason,
        "stability": comparison.stability,
        "stability_reason": steadiness.reason,
        "outcome": comparison.decision.outcome.partition(" (")[0],
        "difference": comparison.difference,
        "interval": comparison.interval,
        "interval_95": comparison.interval_at(ALPHA),
        "level": comparison.level,
        "p": comparison.p,
        "family": None if comparison.family is None else vars(comparison.family),
        "se": comparison.estimate.se,
        "df": comparison.estimate.df,
        "method": comparison.method,
        "paired": known.paired,
        **{name: getattr(question, name) for name in QUESTION},
        "num_examples": known.num_examples,
        "num_clusters": known.num_clusters,
        "skewness": comparison.skewness,
        "power_at_smallest": comparison.power_at_smallest,
        "exaggeration": comparison.exaggeration,
        "baseline": vars(known.baseline),
        "variant": vars(known.variant),
        "exact": None if exact is None else vars(exact),
        "effects": vars(comparison.effects),
        "spread": vars(comparison.spread),
        "spread_test": {"p": steadiness.spread_p, "method": steadiness.spread_method},
        "failed": {**dict(zip(("baseline", "variant"), failures.failed, strict=True)),
                   "p": failures.fisher_p, "worst_p": failures.worst_p},
        "plan": {
            "sd": plan.sd, "sd_bound": plan.sd_bound, "more_seeds": plan.more,
            "is_decided": comparison.decision.is_decided,
            "seeds_needed": {f"{power:g}": count for power, count in plan.seeds.items()},
            "detectable": {f"{power:g}": effect for power, effect in plan.detectable.items()},
        },
        "per_seed": [{"seed": s, "baseline": b, "variant": v} for s, b, v in comparison.per_seed],
        "notes": comparison.notes,
    }  # fmt: skip
    return {key: plain(value) for key, value in values.items()}


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; a number that is not finite becomes None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def show(number: float) -> str:
    """Write a number with three digits; what is unknown is a dash."""
    return "–" if math.isnan(number) else f"{number:.3g}".replace("-", "−")


def signed(number: float) -> str:
    """Write a difference with its sign and four digits."""
    return "–" if math.isnan(number) else f"{number:+.4g}".replace("-", "−").replace("inf", "∞")


def percent(share: float) -> str:
    """Write a share in percent, with up to six digits."""
    return f"{100 * share:.6g} %"


def show_count(number: float) -> str:
    """Write a number of seeds."""
    if math.isnan(number):
        return "–"
    return "no number" if math.isinf(number) else f"{number:.0f}"


def show_p(p: float) -> str:
    """Write a p with three digits."""
    if math.isnan(p):
        return "p unknown"
    return f"p = {p:.3g}" if p >= 1e-4 else "p < 0.0001"
