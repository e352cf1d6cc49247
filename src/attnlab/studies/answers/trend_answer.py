"""Answers about trends: does a difference shrink or grow with the size of the model, or with longer training?

All slopes of one kind, over arms and phases, are one family.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, adjust, compare
from attnlab.statistics.arm_data import explain_ceiling
from attnlab.statistics.inference import Inference
from attnlab.statistics.question import ALPHA, Question
from attnlab.statistics.trend import (
    MIN_SEEDS_AT_SIZE,
    MIN_SIZES,
    TOO_FEW_AT_SIZE,
    WITH_SIZE,
    WITH_STEPS,
    PlacedScores,
    combine_places,
    decide_trend,
    estimate_slope,
    weigh_slope,
)  # fmt: skip
from attnlab.statistics.verdict import DEGENERATE, FINISHED, NOT_COMPARABLE, STILL_TRAINING, TOO_FEW
from attnlab.tasks.scores import LOWER_IS_BETTER

from ..file.design import Phase
from ..file.horizons import find_horizon, find_phase, list_compared
from ..integrity.tables.metrics import find_limits
from .family import choose_looks, decide_family
from .joint_answer import JointAnswer, JointData, JointPoint, explain_unusable
from .run_table import RunTable
from .size_differences import explain_other_sizes


@dataclass(frozen=True)
class _Draft:
    """The differences of one arm at several places, before the slopes of a family are decided."""

    answer: JointAnswer
    scores: tuple[PlacedScores, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    smallest: float = 1.0
    """The smallest slope that matters, on the analysis scale."""

    @property
    def question(self) -> Question:
        """The question of the comparison at the last place."""
        return self.comparisons[-1].question

    def compare_seeds(self) -> Comparison:
        """Compare the slopes of the seeds that have a score at every place."""
        return compare(*combine_places(self.scores), smallest=self.smallest, clusters=self.scores[0].clusters)


def judge_sizes(data: JointData) -> list[JointAnswer]:
    """Judge the trend over sizes of every arm, in the phases that the study asks about."""
    trend = data.study.trend
    if trend is None:
        return []
    phases = [find_phase(data.study, name) for name in trend.phases or list_compared(data.study)]
    drafts = [_draft_sizes(data, phase, arm) for phase in phases for arm in data.arms]
    tested = {at: draft for at, draft in enumerate(drafts) if draft.scores}
    inferences = _infer_sizes(data, tested)
    return [_decide(draft, inferences[at]) if at in tested else draft.answer for at, draft in enumerate(drafts)]


def _infer_sizes(data: JointData, tested: Mapping[int, _Draft]) -> dict[int, Inference]:
    looks = choose_looks(data.study, data.status)
    if looks == "open":  # only the slopes of single seeds have a test that stays valid
        family = {at: draft.compare_seeds() for at, draft in tested.items()}
        return {at: one.inference for at, one in decide_family(data.study, family, data.status).items()}
    slopes = {at: estimate_slope(draft.scores) for at, draft in tested.items()}
    # With declared looks each has an equal share of the level.
    alpha = ALPHA / (1 if looks is None else len(looks))
    adjusted = adjust({at: slope.at(alpha).p for at, slope in slopes.items()}, alpha=alpha)
    return {at: slope.at(adjusted[at].level) for at, slope in slopes.items()}


def _draft_sizes(data: JointData, phase: Phase, arm: str) -> _Draft:
    study, tables = data.study, {size: data.table(phase.name, size) for size in data.study.sizes}
    counts = {size: count_parameters(table, study.baseline) for size, table in tables.items()}
    answers = {size: data.find(phase.name, size, arm) for size in tables}
    figure = next((one.figure for one in answers.values() if one.figure), "")
    places = sorted(tables, key=lambda size: counts[size] or 0)
    empty = JointAnswer("trend", arm, phase.name, ", ".join(places), figure, "", registration=data.status.words)
    comparisons = {size: one.comparison for size, one in answers.items()}
    reasons = {size: explain_unusable(one, comparisons[size]) for size, one in answers.items()}
    reasons = {size: why or _explain_ceiling(comparisons[size]) for size, why in reasons.items()}
    obstacle = "" if len(tables) >= MIN_SIZES else f"{len(tables)} sizes, and a trend needs {MIN_SIZES}"
    obstacle = obstacle or explain_other_sizes(study, tables)
    obstacle = obstacle or "; ".join(f"in {size}, {reasons[size]}" for size in places if reasons[size])
    if not obstacle and (None in counts.values() or len({*counts.values()}) < MIN_SIZES):
        obstacle = f"a trend needs {MIN_SIZES} numbers of parameters, and the sizes have {_list_counts(counts)}"
    if obstacle:
        return _Draft(replace(empty, verdict=NOT_COMPARABLE.format(obstacle)))
    known = [comparison for size in places if (comparison := comparisons[size]) is not None]
    if few := [f"{size} has {one.data.num_seeds}" for size, one in zip(places, known, strict=True)
               if one.data.num_seeds < MIN_SEEDS_AT_SIZE]:  # fmt: skip
        reason = f"{', '.join(few)} paired seeds; a trend needs {MIN_SEEDS_AT_SIZE} at every size"
        return _Draft(replace(empty, verdict=TOO_FEW_AT_SIZE, reason=reason))
    scores = tuple(_place(tables[size], size, float(counts[size] or 0), study.baseline, arm) for size in places)
    trend = study.trend
    wanted = None if trend is None or trend.smallest is None else replace(known[-1].question, smallest=trend.smallest)
    smallest = wanted.threshold if wanted else known[-1].question.threshold / _count_doublings(scores)
    notes = tuple(_note_sizes(data, arm, places, known))
    return _Draft(replace(empty, notes=notes), scores, tuple(known), smallest)


def _note_sizes(data: JointData, arm: str, places: Sequence[str], comparisons: Sequence[Comparison]) -> Iterator[str]:
    unfinished = [size for size, one in zip(places, comparisons, strict=True) if one.decision.outcome == STILL_TRAINING]
    if unfinished:
        yield f"still training in {', '.join(unfinished)}: the trend is that of the scores so far"
    if any(size.checkpoint is not None for size in data.study.sizes.values()):
        yield "the sizes start from checkpoints: how these were pretrained is not compared"
    if len({data.study.arms[name].line(size) for name in (arm,) for size in places}) > 1:
        yield f"{arm} has another line in some sizes (by_size), which is part of the trend"


def judge_horizons(data: JointData) -> list[JointAnswer]:
    """Judge whether the gap to the baseline closes or opens over the horizons, for every arm, phase and size."""
    if data.study.horizons is None:
        return []
    drafts = [
        _draft_horizons(data, name, size, arm)
        for name in list_compared(data.study) for size in data.study.sizes for arm in data.arms
    ]  # fmt: skip
    family = {at: draft.compare_seeds() for at, draft in enumerate(drafts) if draft.scores}
    decided, answers = decide_family(data.study, family, data.status), []
    for at, draft in enumerate(drafts):
        if at not in decided:
            answers.append(draft.answer)
        elif decided[at].decision.outcome in (TOO_FEW, DEGENERATE):
            decision = decided[at].decision
            answers.append(replace(draft.answer, verdict=decision.words, reason=decision.reason))
        else:
            answers.append(_decide(draft, decided[at].inference))
    return answers


def _draft_horizons(data: JointData, name: str, size: str, arm: str) -> _Draft:
    phases = [phase for phase in data.study.phases if name in phase.names]
    longest = data.find(phases[-1].name, size, arm)
    empty = JointAnswer("horizons", arm, name, size, longest.figure, "", registration=data.status.words)
    if why := explain_unusable(longest, longest.comparison):
        return _Draft(replace(empty, verdict=NOT_COMPARABLE.format(why)))
    assert longest.comparison is not None
    scores, comparisons = [], []
    for phase in phases:
        table = data.table(phase.name, size)
        try:
            comparison = longest.comparison
            if phase is not phases[-1]:
                comparison = _compare_again(table, arm, data.study.baseline, longest.figure, comparison.question)
            why = explain_unusable(longest, comparison) or _explain_ceiling(comparison)
            placed = _place(table, phase.name, float(find_horizon(phase) or 0), data.study.baseline, arm)
            scores.append(placed)
            comparisons.append(comparison)
        except StatisticsError as error:
            why = str(error)
        if why:
            return _Draft(replace(empty, verdict=NOT_COMPARABLE.format(f"in {phase.name}, {why}")))
    if not combine_places(scores)[0]:
        return _Draft(replace(empty, verdict=NOT_COMPARABLE.format("no seed has a figure at every horizon")))
    smallest = longest.comparison.question.threshold / _count_doublings(scores)
    return _Draft(empty, tuple(scores), tuple(comparisons), smallest)


def _compare_again(table: RunTable, arm: str, baseline: str, metric: str, question: Question) -> Comparison:
    """Compare an arm at a shorter horizon, with the question of the longest."""
    measured, seeds = table.measure((baseline, arm), metric), table.shared_seeds(baseline, arm, metric=metric)
    return compare(
        measured.tables[baseline], measured.tables[arm], True, question.smallest,
        higher_is_better=metric not in LOWER_IS_BETTER, obstacle=table.explain_unpaired(baseline, arm, seeds),
        clusters=measured.clusters, scale=measured.scale, floor=None if table.floor is None else table.floor[0],
        ceiling=table.ceiling, limits=find_limits(metric, table.ceiling),
    )  # fmt: skip


def _decide(draft: _Draft, inference: Inference) -> JointAnswer:
    """Decide a slope at the level of its family."""
    comparisons, question, show = draft.comparisons, draft.question, draft.question.to_difference
    intervals = [one.interval_at(inference.level) for one in comparisons]
    words = WITH_SIZE if draft.answer.kind == "trend" else WITH_STEPS
    verdict, reason = decide_trend(inference.interval, draft.smallest, intervals[0], intervals[-1], words)
    notes = list(draft.answer.notes)
    uneven = [one.data.failures.text for one in comparisons if one.data.failures.is_uneven]
    if uneven:
        verdict = verdict + FINISHED if verdict in words.change_words else verdict
        notes += uneven
    points = tuple(
        JointPoint(scores.name, scores.place, one.difference, interval, one.data.num_seeds)
        for scores, one, interval in zip(draft.scores, comparisons, intervals, strict=True)
    )
    differences = [one.estimate.difference for one in comparisons]
    line = _fit_line([scores.place for scores in draft.scores], differences)
    return replace(
        draft.answer, verdict=verdict, reason=reason, value=show(sum_slope(draft.scores, differences)),
        interval=(show(inference.interval[0]), show(inference.interval[1])), level=inference.level, p=inference.p,
        smallest=show(draft.smallest), unit=question.unit, method=inference.method, points=points,
        line=(show(line[0]), show(line[1])), notes=tuple(notes),
    )  # fmt: skip


def sum_slope(scores: Sequence[PlacedScores], differences: Sequence[float]) -> float:
    """Return the slope of the differences at some places."""
    return float(weigh_slope([one.place for one in scores]) @ differences)


def _fit_line(places: Sequence[float], differences: Sequence[float]) -> tuple[float, float]:
    x, slope = [math.log2(place) for place in places], float(weigh_slope(places) @ differences)
    middle, mean = sum(x) / len(x), sum(differences) / len(differences)
    return mean + slope * (x[0] - middle), mean + slope * (x[-1] - middle)


def _place(table: RunTable, name: str, place: float, baseline: str, arm: str) -> PlacedScores:
    measured = table.measure((baseline, arm), table.metric or "")
    return PlacedScores(name, place, measured.tables[baseline], measured.tables[arm], measured.clusters)


def count_parameters(table: RunTable, arm: str) -> int | None:
    """Return the number of parameters of an arm's model, from the result of a run; None before any has ended."""
    rows = (table.results.get(run.id) for run in table.runs[arm].values())
    counts = (row.result.get("parameters", {}).get("total") for row in rows if row is not None)
    return next((int(count) for count in counts if count), None)


def _list_counts(counts: Mapping[str, int | None]) -> str:
    return ", ".join(f"{size} {'unknown' if count is None else f'{count:,}'}" for size, count in counts.items())


def _count_doublings(scores: Sequence[PlacedScores]) -> float:
    return math.log2(scores[-1].place / scores[0].place)


def _explain_ceiling(comparison: Comparison | None) -> str:
    return "" if comparison is None else explain_ceiling(*comparison.data.moments, comparison.question)
