"""From a ledger to verdicts: each arm against the baseline, for every phase and size that the study compares.

All primary comparisons of a study are one family: a study of 3 arms, 3 phases and 3 sizes asks 18 questions, and
without an adjustment over all of them a third of such studies would find a difference where there is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attnlab.errors import StatisticsError
from attnlab.statistics import Comparison, compare, conclude_family
from attnlab.statistics.comparison import conclude as conclude_comparison
from attnlab.statistics.question import ALPHA
from attnlab.statistics.verdict import FEWEST_SEEDS, NOT_COMPARABLE
from attnlab.tasks.scores import LOWER_IS_BETTER

from ..file.design import Design, Phase
from ..ledger.database import Ledger
from ..plan.planning import PlannedRun
from .evidence import Evidence
from .leak_correction import honest_note
from .registration import Standing, note_verdict, stand

Key = tuple[str, str, str]
"""Phase, size and arm of a comparison."""
NOTED = ("phase", "size", "arm", "verdict", "registration")
"""What the ledger keeps of an answer that was printed."""


@dataclass(frozen=True)
class Answer:
    """What a study says of one arm, in one phase and size; no comparison where there was nothing to compare."""

    phase: str
    size: str
    arm: str
    figure: str
    verdict: str
    comparison: Comparison | None
    notes: tuple[str, ...] = ()
    registration: str = ""
    """How the verdict stands to what was declared beforehand: AS REGISTERED, CHANGED AFTER LOOKING (…), …"""

    def record(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        comparison = None if self.comparison is None else self.comparison.record()
        return {**vars(self), "notes": list(self.notes), "comparison": comparison}


def common_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return the notes that stand beside every one of several answers, to be said once."""
    if len(answers) < 2:
        return ()
    return tuple(note for note in answers[0].notes if all(note in answer.notes for answer in answers))


def conclude(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str]
) -> list[Answer]:  # fmt: skip
    """Analyse a study whose runs have all ended, and write its verdicts into the ledger as ones that were printed."""
    results = digest_results(planned, ledger)
    answers = analyse(study, planned, ledger, obstacles, stand(ledger, study, results))
    said = [{name: getattr(one, name) for name in NOTED} for one in answers]
    note_verdict(ledger, study, results, said, is_look=any(map(could_conclude, answers)))
    return answers


def could_conclude(answer: Answer) -> bool:
    """Tell whether an answer had what a verdict needs: comparable arms, and seeds enough."""
    one = answer.comparison
    return one is not None and not one.question.obstacle and one.known.num_seeds >= FEWEST_SEEDS


def digest_results(planned: Sequence[PlannedRun], ledger: Ledger) -> str:
    """Return a hash of what became of the runs: the same results, looked at again, are one look."""
    results = ledger.results()
    found = []
    for run in sorted(planned, key=lambda one: one.id):
        row = results.get(run.id)
        last = None if row is None else row.result.get("last")
        found.append((run.id, None if row is None else row.status, last and last["figures"]))
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def analyse(
    study: Design, planned: Sequence[PlannedRun], ledger: Ledger, obstacles: Mapping[str, str],
    standing: Standing = Standing(),  # noqa: B008
) -> list[Answer]:  # fmt: skip
    """Compare every arm with the baseline. obstacles: why arms cannot be compared, whatever they gave."""
    places = {(place.phase.name, place.size): place for place in places_of(study, planned, ledger)}
    drafts = {
        (*where, arm): place.draft(arm, obstacles)
        for where, place in places.items()
        for arm in study.arms
        if arm != study.baseline
    }
    family = {key: draft.comparison for key, draft in drafts.items() if draft.comparison and not draft.is_barred}
    settled = settle(study, family, standing)
    answers = []
    for key, draft in drafts.items():
        done = replace(draft, comparison=settled.get(key, draft.comparison))
        answers.append(places[key[:2]].answer(key[2], done, standing))
    return answers


def places_of(study: Design, planned: Sequence[PlannedRun], ledger: Ledger) -> Iterator[PhaseAtSize]:
    """Yield every phase and size that compares something."""
    results, parents = ledger.results(), {run.id: run for run in planned}
    for phase in study.phases:
        for size in study.sizes if phase.smallest is not None else ():
            runs: dict[str, dict[int, PlannedRun]] = {arm: {} for arm in study.arms}
            for run in planned:
                if run.phase == phase.name and run.size == size:
                    runs[run.arm][run.seed] = run
            yield PhaseAtSize(study, phase, size, Evidence(runs, results, ledger, parents))


def count_comparisons(study: Design) -> int:
    """Return how many comparisons a study makes: arms but the baseline, in every size of every phase that compares."""
    return sum(phase.smallest is not None for phase in study.phases) * len(study.sizes) * (len(study.arms) - 1)


def settle(study: Design, family: Mapping[Key, Comparison], standing: Standing) -> dict[Key, Comparison]:
    """Decide the comparisons of a study as one family: by Holm, or each at its share where there are several looks."""
    if study.looks is None and standing.is_declared:
        return conclude_family(family)
    alpha = ALPHA / max(1, len(family))
    # Fewer seeds than the first look has give no verdict; the e-process takes any number of them.
    is_look = isinstance(study.looks, list) and len(study.seeds) in study.looks and standing.is_declared
    looks = study.looks if is_look else "open"
    return {
        key: conclude_comparison(one.estimate, replace(one.question, alpha=alpha, looks=looks), one.known)
        for key, one in family.items()
    }


@dataclass(frozen=True)
class Draft:
    """A comparison before it is decided among the others of its study, and what must be said beside it."""

    figure: str
    comparison: Comparison | None
    obstacle: str = ""
    notes: tuple[str, ...] = ()
    is_barred: bool = False
    """Whether the arms could not be compared whatever the seeds gave, so that it is no part of the family."""


@dataclass(frozen=True)
class PhaseAtSize:
    """One phase and size of a study, where every arm is compared with the baseline."""

    study: Design
    phase: Phase
    size: str
    evidence: Evidence

    def draft(self, arm: str, obstacles: Mapping[str, str]) -> Draft:
        """Compare one arm; where it cannot be compared, the reason is the answer."""
        figure, baseline = self.evidence.figure() or "", self.study.baseline
        own, theirs = obstacles.get(arm, ""), obstacles.get(baseline, "")
        obstacle = own or (f"of the baseline, {theirs}" if theirs else "")
        missing = self.missing(arm, figure)
        if missing:
            return Draft(figure, None, obstacle or missing, is_barred=bool(obstacle))
        is_barred = bool(obstacle)
        obstacle = obstacle or self.evidence.unpaired(baseline, arm, self.seeds_of(arm, figure))
        notes = (honest_note(self.evidence, arm, baseline, figure),) if own else ()
        try:
            return Draft(figure, self.compare(arm, figure, obstacle), obstacle, notes, is_barred)
        except StatisticsError as error:
            return Draft(figure, None, str(error), notes, is_barred)

    def compare(self, arm: str, figure: str, obstacle: str) -> Comparison:
        """Compare one arm with the baseline, by itself."""
        baseline = self.study.baseline
        measured = self.evidence.measure((baseline, arm), figure)
        floor = self.evidence.floor()
        return compare(
            measured.tables[baseline], measured.tables[arm], True, float(self.phase.smallest or 1.0),
            higher_is_better=figure not in LOWER_IS_BETTER, obstacle=obstacle, clusters=measured.clusters,
            scale=measured.scale, floor=None if floor is None else floor[0], ceiling=self.evidence.ceiling(),
            late_gain=self.late_gain(arm, figure),
        )  # fmt: skip

    def late_gain(self, arm: str, figure: str) -> float | None:
        """Return what the arm, or the baseline if that is more, gained in the last fifth of its training."""
        gains = [self.evidence.late_gain(one, figure) for one in (self.study.baseline, arm)]
        return max((gain for gain in gains if gain is not None), default=None)

    def missing(self, arm: str, figure: str) -> str:
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

    def answer(self, arm: str, draft: Draft, standing: Standing) -> Answer:
        """Write an answer with what must be said beside it."""
        one = draft.comparison
        verdict = NOT_COMPARABLE.format(draft.obstacle) if one is None else one.verdict
        notes = draft.notes
        if one is not None and not draft.is_barred:  # beside a leak, what the seeds show is of no use
            notes += one.notes
        if standing.note:
            notes += (standing.note,)
        floor = self.evidence.floor()
        if floor is not None:
            notes += (f"the floor is {floor[0]:.4g}: {floor[1]}",)
        shared = next((run for run in self.ancestors() if run.is_shared), None)
        if shared is not None:
            notes += (f"'{shared.name}' was trained once an arm: seeds vary what comes after it alone",)
        return Answer(self.phase.name, self.size, arm, draft.figure, verdict, one, notes, standing.words)

    def ancestors(self) -> list[Phase]:
        """List the phases that this one comes after."""
        phases = {phase.name: phase for phase in self.study.phases}
        found, phase = [], self.phase
        while phase.after is not None:
            phase = phases[phase.after]
            found.append(phase)
        return found
