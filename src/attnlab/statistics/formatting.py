"""A comparison as text and as plain values for JSON, and how numbers are written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .question import ALPHA

if TYPE_CHECKING:
    from .comparison import Comparison

MAX_ROWS = 30
"""Seeds whose scores are printed; the record has all."""
RECORDED = (
    "verdict", "stability", "difference", "interval", "level", "p", "plain_p", "method", "widened",
    "skewness", "power_at_smallest", "exaggeration", "notes",
)  # fmt: skip
RECORDED_OF_QUESTION = ("smallest", "higher_is_better", "looks", "scale", "floor", "ceiling", "late_gain")


def describe(comparison: Comparison) -> str:
    """Write a comparison as text: verdict, difference, further figures, and each seed."""
    exact, data, spread = comparison.exact, comparison.data, comparison.spread
    low, high = spread.ratio_interval
    lines = [
        f"{comparison.verdict}: {comparison.decision.reason}",
        _explain_verdict(comparison),
        f"{comparison.stability}: {data.stability.reason}",
        "",
        f"  difference   {_describe_difference(comparison)}",
        f"  pairing      {_describe_pairing(comparison)}",
        f"  baseline     {data.baseline}",
        f"  variant      {data.variant}",
        f"  exact        {show_p(exact.p)} ({exact.method}; smallest possible {exact.smallest:.2g})" if exact else None,
        f"  skewness     {show(comparison.skewness)}",
        f"  effect       {_describe_effect(comparison)}",
        f"  spread       SD ratio {show(spread.ratio)} [{show(low)}, {show(high)}], {spread.assumption}",
        f"  seeds        {_describe_plan(comparison)}",
        *(
            f"  note         {note}"
            for kind, notes in comparison.notes_by_kind.items()
            if kind != "widening"
            for note in notes
        ),
    ]
    return "\n".join([line for line in lines if line is not None] + _describe_seeds(comparison))


def describe_widening(comparison: Comparison) -> str:
    """Write by how much an interval is wider than a plain one, and both p-values, in a few words."""
    low, high = (f"{factor:.3g}" for factor in comparison.widened)
    sides = [f"{factor} times {side}" for factor, side in ((low, "below"), (high, "above")) if factor != "1"]
    factors = f"{low} times" if low == high else " and ".join(sides)
    # The e-process of open-ended looks has no plain test, and another test may have overruled t.
    is_of_t = comparison.question.looks != "open" and comparison.inference.exact is None
    is_of_t = is_of_t and comparison.p != comparison.data.failures.worst_p
    if not is_of_t:
        return factors
    plain, widened = show_p(comparison.plain_p), show_p(comparison.p)
    return f"{factors}, {f'plain {plain}, widened {widened}' if plain != widened else f'{plain} as in a plain test'}"


def _explain_verdict(comparison: Comparison) -> str | None:
    """Say that an interval is widened, if it is, and whether a plain test would decide otherwise."""
    if not comparison.is_widened:
        return None
    otherwise = " A plain t test would say that the arms differ." if comparison.notes_by_kind["widening"] else ""
    return (
        f"Interval and p are wider than those of a plain t test ({describe_widening(comparison)}), since few or skewed "
        f"scores can hide a long tail (docs/statistics.md, Skewness).{otherwise}"
    )


def _describe_difference(comparison: Comparison) -> str:
    unit, family = comparison.question.unit, comparison.family
    low, high = comparison.interval
    text = (
        f"{signed(comparison.difference)}{unit}, {percent(1 - comparison.level)} interval "
        f"[{signed(low)}, {signed(high)}]{unit}, {show_p(comparison.p)} ({comparison.method})"
    )
    if family is None or family.size == 1:
        return text
    return f"{text}, adjusted {show_p(family.adjusted)} among {family.size} ({family.method})"


def _describe_pairing(comparison: Comparison) -> str:
    """Say whether the arms were compared as pairs, and how to compare them the other way."""
    if comparison.data.scores is None:
        return "unpaired: pairs need the score of each seed"
    if comparison.data.paired:
        return "paired: the same place or name is the same seed in both arms; if it is not, give paired=False"
    return "unpaired; if the same place or name is the same seed in both arms, give paired=True"


def _describe_effect(comparison: Comparison) -> str:
    effects = comparison.effects
    parts = [f"Hedges g {show(effects.hedges_g)}"]
    if not math.isnan(effects.probability):
        parts.append(f"P(variant seed > baseline seed) {effects.probability:.2f}")
    if effects.num_ahead is not None:
        parts.append(f"variant ahead in {effects.num_ahead} of {comparison.data.baseline.n} pairs")
        parts.append(f"ρ between arms {show(effects.rho)}")
    return ", ".join(parts)


def _describe_plan(comparison: Comparison) -> str:
    plan, unit = comparison.plan, comparison.question.unit
    if math.isnan(plan.sd_bound):
        return "one seed has no spread to plan from"
    if comparison.decision.is_decided:
        return f"decided with {plan.present} per arm; no more are needed"
    needed = " and ".join(f"{show_count(count)} ({power:.0%} power)" for power, count in plan.seeds.items())
    effects = " and ".join(f"{show(effect)}{unit} ({power:.0%})" for power, effect in plan.detectable.items())
    text = f"a difference of {plan.smallest:g}{unit} needs {needed} per arm in all; {plan.present} can detect {effects}"
    if math.isnan(plan.more):
        return text
    return (
        f"about {show_count(plan.more)} more per arm if the difference stays at {signed(comparison.difference)}{unit}; "
        f"{text}"
    )


def _describe_seeds(comparison: Comparison) -> list[str]:
    rows, paired = comparison.per_seed, comparison.data.paired
    if not rows:
        return []
    lines = ["", f"  {'seed':<8}{'baseline':>12}{'variant':>12}{'  difference' * paired}"]
    for seed, baseline, variant in rows[:MAX_ROWS]:
        cells = [_show_score(score) for score in (baseline, variant)]
        if paired and baseline is not None and variant is not None:
            change = f"{signed(100 * (variant / baseline - 1))} %" if baseline > 0 else "–"
            cells.append(signed(variant - baseline) if comparison.question.scale == "linear" else change)
        lines.append(f"  {seed.ljust(8)}{''.join(cell.rjust(12) for cell in cells)}".rstrip())
    return [*lines, f"  … and {len(rows) - MAX_ROWS} more"] if len(rows) > MAX_ROWS else lines


def list_facts(comparison: Comparison) -> list[tuple[str, str]]:
    """List the figures that a notebook shows: name and text."""
    seeds = comparison.per_seed
    scores = [("seed", "baseline → variant")] if seeds else []
    scores += [(seed, f"{_show_score(baseline)} → {_show_score(variant)}") for seed, baseline, variant in seeds]
    return [
        ("difference", _describe_difference(comparison)),
        ("pairing", _describe_pairing(comparison)),
        ("baseline", str(comparison.data.baseline)),
        ("variant", str(comparison.data.variant)),
        *(("note", note) for note in comparison.notes),
        *scores,
    ]


def _show_score(score: float | None) -> str:
    return "failed" if score is None else f"{score:.6g}"


def record(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values; what is unknown or infinite is None."""
    plan, data, question = comparison.plan, comparison.data, comparison.question
    optional = {"family": comparison.family, "exact": comparison.exact}
    values = {
        **{name: getattr(comparison, name) for name in RECORDED},
        **{name: getattr(question, name) for name in RECORDED_OF_QUESTION},
        **{name: None if value is None else vars(value) for name, value in optional.items()},
        "reason": comparison.decision.reason, "stability_reason": data.stability.reason,
        "outcome": comparison.decision.outcome.partition(" (")[0],
        "interval_95": comparison.interval_at(ALPHA), "se": comparison.estimate.se, "df": comparison.estimate.df,
        "paired": data.paired, "num_examples": data.num_examples, "num_clusters": data.num_clusters,
        "baseline": vars(data.baseline), "variant": vars(data.variant),
        "effects": vars(comparison.effects), "spread": vars(comparison.spread),
        "spread_test": {"p": data.stability.spread_p, "method": data.stability.spread_method},
        "failed": {**dict(zip(("baseline", "variant"), data.failures.failed, strict=True)),
                   "p": data.failures.fisher_p, "worst_p": data.failures.worst_p},
        "plan": {
            "sd": plan.sd, "sd_bound": plan.sd_bound, "more_seeds": plan.more,
            "is_decided": comparison.decision.is_decided,
            "seeds_needed": {f"{power:g}": count for power, count in plan.seeds.items()},
            "detectable": {f"{power:g}": effect for power, effect in plan.detectable.items()},
        },
        "per_seed": [{"seed": s, "baseline": b, "variant": v} for s, b, v in comparison.per_seed],
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
    """Write a number with three digits; NaN is a dash."""
    return "–" if math.isnan(number) else f"{number:.3g}".replace("-", "−")


def show_value(value: float) -> str:
    """Write a value of a metric with four digits."""
    return f"{value:.4g}".replace("-", "−")


def signed(number: float) -> str:
    """Write a difference with its sign and four digits; NaN is a dash."""
    return "–" if math.isnan(number) else f"{number:+.4g}".replace("-", "−").replace("inf", "∞")


def percent(share: float) -> str:
    """Write a share in percent, with up to six digits."""
    return f"{100 * share:.6g} %"


def show_count(number: float) -> str:
    """Write a number of seeds."""
    return "–" if math.isnan(number) else "no number" if math.isinf(number) else f"{number:.0f}"


def show_p(p: float) -> str:
    """Write a p-value with three digits."""
    return "p unknown" if math.isnan(p) else f"p = {p:.3g}" if p >= 1e-4 else "p < 0.0001"
