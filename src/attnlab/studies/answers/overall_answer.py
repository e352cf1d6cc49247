"""One answer over several tasks of a study, for every arm and size, with the answer without each task beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison
from attnlab.statistics.arm_data import explain_ceiling
from attnlab.statistics.formatting import signed
from attnlab.statistics.overall import LeftOut, compare_overall, decide_overall, leave_one_out
from attnlab.statistics.verdict import BETTER, NOT_COMPARABLE, STILL_TRAINING, WORSE

from ..file.addresses import strip_horizon
from ..file.horizons import find_phase
from .family import decide_family
from .joint_answer import JointAnswer, JointData, JointPoint, explain_unusable

Tasks = dict[str, Comparison]


def conclude_tasks(data: JointData) -> list[JointAnswer]:
    """Answer over the phases that the study names, for every arm and size."""
    asked = data.study.conclusion
    if asked is None:
        return []
    phases = [find_phase(data.study, name).name for name in asked.phases]
    places = [(size, arm) for size in data.study.sizes for arm in data.arms]
    answers = {place: _draft(data, phases, *place) for place in places}
    tasks, family = dict[tuple[str, str], Tasks](), dict[tuple[str, str], Comparison]()
    for place in places:
        known = {phase: one for phase in phases if (one := data.find(phase, *place).comparison) is not None}
        try:
            if not answers[place].verdict:
                family[place], tasks[place] = compare_overall(known), known
        except StatisticsError as error:
            answers[place] = replace(answers[place], verdict=NOT_COMPARABLE.format(error))
    for place, decided in decide_family(data.study, family, data.status).items():
        sides = [_find_side(data.find(phase, *place).verdict) for phase in phases]
        answers[place] = _decide(answers[place], decided, tasks[place], sides)
    return list(answers.values())


def _draft(data: JointData, phases: Sequence[str], size: str, arm: str) -> JointAnswer:
    """Return the answer with NOT COMPARABLE if a task cannot be compared, else without a verdict."""
    names = ", ".join(map(strip_horizon, phases))
    empty = JointAnswer("conclusion", arm, names, size, "difference / smallest", "", registration=data.status.words)
    for phase in phases:
        answer = data.find(phase, size, arm)
        if why := explain_unusable(answer, answer.comparison):
            return replace(empty, verdict=NOT_COMPARABLE.format(f"in {phase}, {why}"))
    return empty


def _find_side(verdict: str) -> int:
    """Return 1 for a task that is better by its own verdict, −1 if worse, else 0."""
    return {BETTER: 1, WORSE: -1}.get(verdict.removeprefix(f"{STILL_TRAINING}, ").split()[0].rstrip(","), 0)


def _decide(answer: JointAnswer, decided: Comparison, tasks: Tasks, sides: Sequence[int]) -> JointAnswer:
    verdict, reason = decide_overall(decided, sides)
    left_out = leave_one_out(tasks, decided.question.alpha, decided.question.looks)
    return replace(
        answer, verdict=verdict, reason=reason, value=decided.difference, interval=decided.interval,
        level=decided.level, p=decided.p, smallest=1.0, method=decided.method,
        points=tuple(_make_point(task, one) for task, one in tasks.items()),
        without=tuple(_make_mean(one.task, one.comparison) for one in left_out),
        notes=(*_note_left_out(decided, left_out), *_note_tasks(decided, tasks)),
    )  # fmt: skip


def _make_point(task: str, comparison: Comparison) -> JointPoint:
    """Return the difference of a task in units of its `smallest`; positive is better."""
    question = comparison.question
    unit = question.threshold if question.higher_is_better else -question.threshold
    low, high = sorted(end / unit for end in comparison.inference.interval)
    return JointPoint(task, None, comparison.estimate.difference / unit, (low, high), comparison.data.num_seeds)


def _make_mean(task: str, comparison: Comparison) -> JointPoint:
    return JointPoint(task, None, comparison.difference, comparison.interval, comparison.data.num_seeds)


def _note_left_out(decided: Comparison, left_out: Sequence[LeftOut]) -> Iterator[str]:
    if not left_out:
        return
    ranked = sorted(left_out, key=lambda one: one.comparison.difference)
    (low, first), (high, last) = ((signed(one.comparison.difference), one.task) for one in (ranked[0], ranked[-1]))
    yield f"leaving one task out, the mean is between {low} (without {first}) and {high} (without {last})"
    for one in left_out:
        if one.comparison.decision.outcome != decided.decision.outcome:
            yield f"{one.task} decides: without it the answer is {decide_overall(one.comparison, [])[0]}"


def _note_tasks(decided: Comparison, tasks: Mapping[str, Comparison]) -> Iterator[str]:
    yield "the interval is for other seeds in these tasks, not for other tasks"
    ceiling = [task for task, one in tasks.items() if explain_ceiling(*one.data.moments, one.question)]
    if ceiling:
        yield f"both arms are at the ceiling in {', '.join(ceiling)}, which pulls the mean towards 0"
    unfinished = [task for task, one in tasks.items() if one.decision.outcome == STILL_TRAINING]
    if unfinished:
        yield f"still training in {', '.join(unfinished)}: the answer is that of the scores so far"
    conditions = {one.question.condition for one in tasks.values()} - {""}
    yield from (f"every task {condition}" for condition in sorted(conditions))
    yield from decided.notes
