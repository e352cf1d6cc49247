"""From a ledger to verdicts: each arm against the baseline, for every stage and size that the study compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, Question, compare, compare_many, look_limits
from attnlab.statistics.verdict import FEWEST_SEEDS, NOT_COMPARABLE
from attnlab.tasks.scores import LOWER_IS_BETTER

from .design import Design, Stage
from .evidence import Evidence, Table
from .honesty import honest_note
from .ledger import Ledger
from .plan import PlannedRun


@dataclass(frozen=True)
class Answer:
    """What a study says of one arm, in one stage and size; no comparison where there was nothing to compare."""

    stage: str
    size: str
    arm: str
    figure: str
    verdict: str
    comparison: Comparison | None
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        comparison = None if self.comparison is None else self.comparison.record()
        return {**vars(self), "notes": list(self.notes), "comparison": comparison}


def common_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return the notes that stand beside every one of several answers, to be said once."""
    if len(answers) < 2:
        return ()
    return tuple(note for note in answers[0].notes if all(note in answer.notes for answer in answers))


def analyse(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str]
) -> list[Answer]:  # fmt: skip
    """Compare every arm with the baseline. obstacles: why arms cannot be compared, whatever they gave."""
    results, parents = ledger.results(), {run.id: run for run in planned}
    answers: list[Answer] = []
    for stage in study.stages:
        for size in study.sizes if stage.smallest is not None else ():
            runs: dict[str, dict[int, PlannedRun]] = {arm: {} for arm in study.arms}
            for run in planned:
                if run.stage == stage.name and run.size == size:
                    runs[run.arm][run.seed] = run
            found = Asking(study, stage, size, Evidence(runs, results, ledger, parents))
            answers += found.answers(obstacles)
    return answers


@dataclass(frozen=True)
class Asking:
    """One stage and size of a study, asked about every arm."""

    study: Design
    stage: Stage
    size: str
    evidence: Evidence

    def answers(self, obstacles: Mapping[str, str]) -> list[Answer]:
        """Compare the arms; those that cannot be compared are answered with the reason, none is left out."""
        figure = self.evidence.figure() or ""
        baseline = self.study.baseline
        found: dict[str, Answer] = {}
        sound: list[str] = []
        for arm in (one for one in self.study.arms if one != baseline):
            nothing = self.nothing(arm, figure)
            own, theirs = obstacles.get(arm, ""), obstacles.get(baseline, "")
            obstacle = own or (f"of the baseline, {theirs}" if theirs else "")
            obstacle = obstacle or nothing or self.evidence.unpaired(baseline, arm, self.seeds_of(arm, figure))
            if nothing:
                found[arm] = self.answer(arm, figure, None, obstacle)
            elif obstacle:
                tables = self.evidence.tables((baseline, arm), figure)
                question = Question(self.smallest, figure not in LOWER_IS_BETTER, obstacle=obstacle)
                comparison = asked(tables[baseline], tables[arm], question)
                more = (honest_note(self.evidence, arm, baseline, figure),) if own else ()
                found[arm] = self.answer(arm, figure, comparison, obstacle, more)
            else:
                sound.append(arm)
        found.update({arm: self.answer(arm, figure, *one) for arm, one in self.family(sound, figure).items()})
        return [found[arm] for arm in self.study.arms if arm in found]

    @property
    def smallest(self) -> float:
        """The smallest difference worth having."""
        return float(self.stage.smallest or 1.0)

    def nothing(self, arm: str, figure: str) -> str:
        """Say why there is nothing to compare, or nothing where there is."""
        if not figure:
            return "no run was evaluated; has the data a dev split?"
        for name, one in (("the baseline", self.study.baseline), ("it", arm)):
            values = self.evidence.values(one, figure)
            if not any(value is not None for value in values.values()):
                return f"none of the {len(values)} runs of {name} has a figure" if values else f"{name} was not trained"
        return "" if self.seeds_of(arm, figure) else "no seed has a figure in both arms"

    def seeds_of(self, arm: str, figure: str) -> list[int]:
        """List the seeds that have a figure in an arm and in the baseline."""
        ours, theirs = (self.evidence.values(one, figure) for one in (self.study.baseline, arm))
        return [seed for seed, value in ours.items() if value is not None and theirs.get(seed) is not None]

    def family(self, arms: Sequence[str], figure: str) -> dict[str, tuple[Comparison | None, str]]:
        """Compare arms that can be compared, as one family."""
        if not arms:
            return {}
        tables = self.evidence.tables((self.study.baseline, *arms), figure)
        baseline = tables[self.study.baseline]
        question = Question(self.smallest, figure not in LOWER_IS_BETTER)
        try:
            if self.study.looks is None:
                found = compare_many(baseline, {arm: tables[arm] for arm in arms}, True, question)
                return {arm: (comparison, "") for arm, comparison in found.comparisons.items()}
            # Looks are of one comparison: each has its share of the level.
            alpha = question.alpha / len(arms)
            asked_for = {arm: self.looked(question, alpha, len(self.seeds_of(arm, figure))) for arm in arms}
            return {
                arm: (asked(baseline, tables[arm], own), own.obstacle) for arm, own in asked_for.items()
            }  # fmt: skip
        except StatisticsError as error:
            return {arm: (None, str(error)) for arm in arms}

    def looked(self, question: Question, alpha: float, num_seeds: int) -> Question:
        """Return the question as it is put at this look."""
        looks, planned = self.study.looks, len(self.study.seeds)
        base = {"smallest": question.smallest, "higher_is_better": question.higher_is_better}
        if looks is None or looks == "open" or num_seeds in looks:
            return Question(**base, alpha=alpha, looks=looks)  # type: ignore[arg-type]
        assert isinstance(looks, list)
        if planned >= FEWEST_SEEDS and planned not in looks:
            why = f"{planned} seeds are none of the declared looks, {', '.join(map(str, looks))}"
            return Question(**base, obstacle=why)  # type: ignore[arg-type]
        # Seeds that failed bring a look back below the number it was declared for: the limit of the one before holds.
        limits = look_limits(looks, alpha)
        before = [look for look in looks if look <= num_seeds] or looks[:1]
        return Question(**base, alpha=limits[before[-1]])  # type: ignore[arg-type]

    def answer(
        self, arm: str, figure: str, comparison: Comparison | None, obstacle: str, more: tuple[str, ...] = ()
    ) -> Answer:  # fmt: skip
        """Write an answer with what must be said beside it."""
        verdict = NOT_COMPARABLE.format(obstacle) if comparison is None else comparison.verdict
        notes = more if comparison is None else more + comparison.notes
        shared = next((run for run in self.ancestors() if run.is_shared), None)
        if shared is not None:
            notes += (f"'{shared.name}' was trained once an arm: seeds vary what comes after it alone",)
        return Answer(self.stage.name, self.size, arm, figure, verdict, comparison, notes)

    def ancestors(self) -> list[Stage]:
        """List the stages that this one comes after."""
        stages = {stage.name: stage for stage in self.study.stages}
        found, stage = [], self.stage
        while stage.after is not None:
            stage = stages[stage.after]
            found.append(stage)
        return found


def asked(baseline: Table, variant: Table, question: Question) -> Comparison:
    """Put a question to two arms."""
    return compare(
        baseline, variant, True, question.smallest, higher_is_better=question.higher_is_better, alpha=question.alpha,
        looks=question.looks, obstacle=question.obstacle,
    )  # fmt: skip
