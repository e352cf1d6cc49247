"""What a table shows: every arm against the baseline, by group and metric, and which comparisons have too few seeds.

Seeds are compared unpaired unless the user says that they are pairs, since a table does not show whether runs with the
same seed had the same initial weights. Of means with their SDs and numbers of seeds, Welch's t is computed.
All comparisons of primary metrics are one family (Holm); other metrics are exploratory (Benjamini–Hochberg).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnlab.errors import RequestError
from attnlab.statistics import Comparison, Question, compare, conclude_family
from attnlab.statistics.families import Role
from attnlab.statistics.formatting import percent, plain
from attnlab.statistics.question import choose_late_gain
from attnlab.statistics.verdict import MIN_SEEDS, NOT_COMPARABLE, TOO_FEW

from .checks.means import compare_means, find_missing_spread
from .checks.units import Units
from .finding import IntegrityFinding, IntegrityKind, list_first
from .tables.metrics import (
    BOUNDED,
    PERPLEXITIES,
    SIGNED,
    choose_smallest,
    find_limits,
    higher_is_better,
    recognise_metric,
)
from .tables.pairs import ArmPair, find_pairs, measure_late_gain
from .tables.table import Cell, ResultTable, join_words, show_step

PRESUMED = (
    "seeds are independent runs, each with its own initial weights and data order; if models are pretrained, each seed "
    "has its own pretraining",
    "every run that was started is in the table, and none was chosen by its result",
    "all arms were tuned with the same effort, and not on the evaluation set",
)
"""What a verdict presumes and a table cannot show."""
ROLES: tuple[Role, ...] = ("primary", "exploratory")


@dataclass(frozen=True)
class AnalysisTerms:
    """How a table is analysed. smallest, floors: by metric, where given. primary: metrics that get verdicts.

    obstacles: why a metric is not compared at all. left_out: cells that are not analysed. is_paired: the same seed in
    two arms is a pair. arm_obstacles: why an arm is not compared in a group.
    """

    units: Units = field(default_factory=Units)
    smallest: Mapping[str, float] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    primary: Collection[str] = ()
    obstacles: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[Cell] = frozenset()
    is_paired: bool = False
    arm_obstacles: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonRow:
    """One arm against the baseline in one group and metric; `comparison` is None if `obstacle` says why not."""

    group: str
    metric: str
    arm: str
    step: float | None
    comparison: Comparison | None
    obstacle: str = ""
    role: Role = "primary"

    @property
    def name(self) -> str:
        """What is compared, in words."""
        return join_words(self.arm, self.group, self.metric)

    @property
    def verdict(self) -> str:
        """The words of the comparison; those of exploratory metrics get none."""
        if self.comparison is None:
            return NOT_COMPARABLE.format(self.obstacle)
        return self.comparison.verdict if self.role == "primary" else "(exploratory)"

    @property
    def adjusted_p(self) -> float:
        """The p adjusted for the family; NaN if unknown, or if the verdict does not depend on it."""
        if self.comparison is None or self.comparison.family is None or not self.comparison.decision.depends_on_p:
            return math.nan
        return self.comparison.family.adjusted

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        row = {"group": self.group, "metric": self.metric, "arm": self.arm, "step": self.step, "role": self.role}
        if self.comparison is None:
            return {**row, "verdict": self.verdict, "reason": self.obstacle}
        return {**row, **self.comparison.record(), "verdict": self.verdict, "adjusted_p": plain(self.adjusted_p)}


@dataclass(frozen=True)
class TableAnalysis:
    """The comparisons of a table up to one step, and why it was analysed."""

    step: float | None
    rows: tuple[ComparisonRow, ...]
    note: str = ""

    @property
    def title(self) -> str:
        """The step, and why it was analysed."""
        steps = {row.step for row in self.rows if row.step is not None}
        shown = "the last step of each comparison" if len(steps) > 1 else show_step(next(iter(steps), None))
        return f"{shown}{f' ({self.note})' if self.note else ''}"

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {"step": self.step, "note": self.note, "comparisons": [row.record() for row in self.rows]}


def analyse(table: ResultTable, step: float | None, terms: AnalysisTerms, note: str = "") -> TableAnalysis:
    """Compare every arm with the baseline, at the last step up to `step` that both have."""
    pairs = list(find_pairs(table.up_to(step), terms.left_out))
    obstacles = [_find_obstacle(pair, terms) for pair in pairs]
    roles = [ROLES[pair.metric not in terms.primary] for pair in pairs]
    # What cannot be compared counts in the family too, so that resolving it does not change the others' level.
    placeholder = compare([0.0], [0.0], paired=False, obstacle="not compared")
    alone = [placeholder if obstacles[n] else _compare(pair, terms, pairs) for n, pair in enumerate(pairs)]
    concluded: dict[int, Comparison] = {}
    for role in ROLES:
        concluded |= conclude_family({n: alone[n] for n in range(len(pairs)) if roles[n] == role}, role=role)
    rows = []
    for n, pair in enumerate(pairs):
        comparison = None if obstacles[n] else concluded[n]
        rows.append(ComparisonRow(pair.group, pair.metric, pair.arm, pair.step, comparison, obstacles[n], roles[n]))
    return TableAnalysis(step, tuple(rows), note)


def _find_obstacle(pair: ArmPair, terms: AnalysisTerms) -> str:
    if (pair.arm, pair.group) in terms.arm_obstacles:
        return terms.arm_obstacles[pair.arm, pair.group]
    if pair.metric in terms.obstacles:
        return terms.obstacles[pair.metric]
    for name, scores in (("the baseline", pair.baseline), (f"'{pair.arm}'", pair.variant)):
        if not scores:
            return f"every value of {name} is impossible"
        if all(score is None for score in scores.values()):
            return f"{f'all {len(scores)} runs' if len(scores) > 1 else 'the only run'} of {name} failed"
        if recognise_metric(pair.metric) in PERPLEXITIES and any(s is not None and s <= 0 for s in scores.values()):
            return (
                f"a perplexity is at least 1, and one of {name} is {min(s for s in scores.values() if s is not None):g}"
            )
    if terms.is_paired and not any(None not in scores for scores in _list_pairs(pair).values()):
        return f"no seed has a score of both the baseline and '{pair.arm}'"
    if terms.units.are_mixed(pair.cells):
        num = sum(cell in terms.units.fractions for cell in pair.cells)
        looks = "looks like a fraction" if num == 1 else "look like fractions"
        return f"mixed units: {num} of {len(pair.cells)} values {looks}, the others like percentages"
    return find_missing_spread(pair.cells)


def _compare(pair: ArmPair, terms: AnalysisTerms, pairs: Sequence[ArmPair]) -> Comparison:
    name = recognise_metric(pair.metric)
    is_log = name in PERPLEXITIES
    scale = next((terms.units.find_scale(cell) for cell in pair.cells if cell.value), None)
    compared = dict.fromkeys(cell for other in pairs if other.metric == pair.metric for cell in other.cells)
    # Fractions among percentages, which are not converted, would lower the mean that the default is taken from.
    is_fraction = any(cell in terms.units.fractions for cell in pair.cells)
    values = [cell.number for cell in compared if cell.value and (cell in terms.units.fractions) == is_fraction]
    late_gain, late_gain_of = _measure_late_gain(pair, terms, is_log)
    question = Question(
        terms.smallest.get(pair.metric) or choose_smallest(pair.metric, scale, values), higher_is_better(pair.metric),
        scale="log" if is_log else "linear", floor=terms.floors.get(pair.metric),
        ceiling=scale if name in BOUNDED | SIGNED else None, late_gain=late_gain, late_gain_of=late_gain_of,
        limits=find_limits(pair.metric, scale),
    )  # fmt: skip
    if any(cell.is_mean for cell in pair.cells):
        return compare_means(pair.cells, pair.arm, question)
    transform = math.log if is_log else float
    # The seed of an impossible value has no pair. Other seeds without one are refused before.
    kept = {*_list_pairs(pair)} if terms.is_paired else {*pair.baseline, *pair.variant}
    baseline, variant = (
        {seed: None if score is None else transform(score) for seed, score in scores.items() if seed in kept}
        for scores in (pair.baseline, pair.variant)
    )
    return compare(baseline, variant, terms.is_paired, **vars(question))


def _list_pairs(pair: ArmPair) -> dict[str, tuple[float | None, float | None]]:
    """Return the scores of the seeds that both arms have."""
    return {seed: (score, pair.variant[seed]) for seed, score in pair.baseline.items() if seed in pair.variant}


def _measure_late_gain(pair: ArmPair, terms: AnalysisTerms, is_log: bool) -> tuple[float | None, str]:
    """Return the larger gain of the two arms in the last fifth of training, in units of the smallest difference, and
    the arm that has it."""
    if pair.step is None:
        return None, ""
    gains: dict[str, float | None] = {}
    for curve in pair.curves:
        cells = [cell for cell in curve if cell not in terms.left_out]
        gain = None if terms.units.are_mixed(cells) else measure_late_gain(cells, pair.step, is_log)
        if gain is not None:
            gains[curve[0].arm] = gain if higher_is_better(pair.metric) else -gain
    largest, arm = choose_late_gain(gains)
    return 100 * math.expm1(largest) if is_log and largest is not None else largest, arm


def check_pairs(table: ResultTable) -> None:
    """Refuse to compare pairs where the table does not show them."""
    if any(cell.is_mean for cell in table.cells):
        raise RequestError("--paired needs the score of every seed; this table has only means")
    if not table.has_seeds:
        raise RequestError("--paired needs the seed of every run; name its column with --map seed=COLUMN")
    for pair in find_pairs(table):
        if alone := sorted({*pair.baseline} ^ {*pair.variant}):
            where = join_words(pair.group, pair.metric)
            raise RequestError(
                f"--paired needs the same seeds in both arms: of {where}, seed '{alone[0]}' is only in one of "
                f"'{table.baseline}' and '{pair.arm}'. If its run failed, add its row with an empty score; or omit "
                "--paired"
            )


def check_seeds(rows: Sequence[ComparisonRow]) -> Iterator[IntegrityFinding]:
    """Note comparisons with too few seeds for a verdict, and how many more each would need; few seeds are no fault."""
    weak = [(row, row.comparison) for row in rows if row.comparison and row.comparison.decision.outcome == TOO_FEW]
    if not weak:
        return
    counts = sorted({comparison.data.num_seeds for _, comparison in weak})
    more = [_show_more(comparison) for _, comparison in weak]
    needs = [f"{row.name} ({what})" for (row, _), what in zip(weak, more, strict=True)]
    shown = list_first(needs) if len({*more}) > 1 or len(weak) == 1 else f"{more[0]}"
    steps = sorted({row.step for row, _ in weak if row.step is not None})
    where = f" at step {list_first([f'{step:g}' for step in steps])}" if steps else ""
    yield IntegrityFinding(
        IntegrityKind.TOO_FEW_SEEDS,
        f"{len(weak)} of {len(rows)} comparisons {'has' if len(weak) == 1 else 'have'} {' or '.join(map(str, counts))} "
        f"{'seed' if counts == [1] else 'seeds'} per arm{where}; with fewer than {MIN_SEEDS} no verdict is given: "
        f"{shown}{_explain_power([comparison for _, comparison in weak]) if 'by excluding' in shown else ''}",
        is_fault=False,
        data={"num_seeds": counts, "comparisons": [row.name for row, _ in weak]},
    )


def _show_more(comparison: Comparison) -> str:
    more = comparison.plan.more
    if comparison.question.is_still_training:
        return "how many more would settle it is not estimated while its runs still train"
    if comparison.data.num_seeds < 2 or math.isnan(more):
        return "one seed shows no spread to plan from"
    if math.isinf(more):
        return "no number of seeds would settle it"
    return f"about {more:.0f} more would settle it by excluding {_find_excluded_value(comparison)}"


def _explain_power(comparisons: Sequence[Comparison]) -> str:
    levels = {percent(round(1 - comparison.level, 4)) for comparison in comparisons}
    at = f" at {min(levels)}" if len(levels) == 1 else ""
    return (
        f". With so many more seeds per arm the verdict interval{at} excludes this value with 80 % power, if the "
        "difference stays as it is"
    )


def _find_excluded_value(comparison: Comparison) -> str:
    """Name the value that an interval excludes first: 0, or the smallest difference of interest."""
    question, size = comparison.question, abs(comparison.estimate.difference)
    return "0" if size >= question.threshold - size else f"a difference of {question.shown_smallest}"
