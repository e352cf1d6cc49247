"""From a ledger to verdicts: each arm against the baseline, for every stage and size that the study compares."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.statistics import Comparison, Question, check_pairing, compare, compare_many
from attnlab.tasks.scores import LOWER_IS_BETTER
from attnlab.training.record.plain import unspell

from .design import Design, Stage
from .execution import ENDED, RUNS
from .ledger import Ledger, ResultRow
from .plan import PlannedRun


@dataclass(frozen=True)
class Answer:
    """What a study says of one arm, in one stage and size."""

    stage: str
    size: str
    arm: str
    figure: str
    comparison: Comparison

    @property
    def verdict(self) -> str:
        """The verdict's words."""
        return str(self.comparison.verdict)


@dataclass(frozen=True)
class Evidence:
    """The runs of one stage and size: what each arm's seeds gave."""

    runs: Mapping[str, Mapping[int, PlannedRun]]
    results: Mapping[str, ResultRow]
    obstacles: Mapping[str, str]
    """Why arms cannot be compared, whatever they gave."""
    ledger: Ledger
    folder: Path

    def figure(self) -> str | None:
        """Return the figure that decides, where any run has one."""
        for seeds in self.runs.values():
            for run in seeds.values():
                row = self.results.get(run.id)
                if row is not None and row.result.get("last"):
                    return str(row.result["last"]["primary"])
        return None

    def values(self, arm: str, figure: str) -> dict[int, float | None]:
        """Return each seed's figure; None for a run that failed or diverged."""
        found: dict[int, float | None] = {}
        for seed, run in self.runs[arm].items():
            row = self.results.get(run.id)
            ended = row is not None and row.status in ENDED and row.result.get("last")
            found[seed] = float(unspell(row.result)["last"]["figures"][figure]) if ended and row else None
        return found


def analyse(study: Design, planned: Sequence[PlannedRun], ledger: Ledger, folder: Path) -> list[Answer]:
    """Compare every arm with the baseline."""
    leaks = [arm for arm, (passed, found) in ledger.audits().items() if not passed and is_leak(found)]
    leaking = dict.fromkeys(leaks, "its audit finds a leak")
    results = ledger.results()
    answers: list[Answer] = []
    for stage in study.stages:
        for size in study.sizes if stage.smallest is not None else ():
            runs: dict[str, dict[int, PlannedRun]] = {arm: {} for arm in study.arms}
            for run in planned:
                if run.stage == stage.name and run.size == size:
                    runs[run.arm][run.seed] = run
            answers += compare_arms(study, stage, size, Evidence(runs, results, leaking, ledger, folder))
    return answers


def compare_arms(study: Design, stage: Stage, size: str, evidence: Evidence) -> list[Answer]:
    """Compare the arms of one stage and size; those that cannot be compared are answered with the reason."""
    figure = evidence.figure()
    if figure is None:
        return []
    question = Question(float(stage.smallest or 1.0), figure not in LOWER_IS_BETTER)
    tables = {arm: scores_of(evidence, arm, figure) for arm in study.arms}
    sound: dict[str, Any] = {}
    answers = []
    for arm in study.arms:
        if arm == study.baseline or not any(value is not None for value in tables[arm].values()):
            continue
        obstacle = evidence.obstacles.get(arm) or unpaired(evidence, study.baseline, arm)
        if obstacle:
            found = compare(
                tables[study.baseline], tables[arm], True, question.smallest,
                higher_is_better=question.higher_is_better, obstacle=obstacle,
            )  # fmt: skip
            answers.append(Answer(stage.name, size, arm, figure, found))
        else:
            sound[arm] = tables[arm]
    if sound:
        family = compare_many(tables[study.baseline], sound, True, question)
        answers += [Answer(stage.name, size, arm, figure, found) for arm, found in family.comparisons.items()]
    return answers


def scores_of(evidence: Evidence, arm: str, figure: str) -> dict[int, Any]:
    """Return a row of examples for each seed where the figure is their mean, else one number; None for a failed run."""
    values = evidence.values(arm, figure)
    rows: dict[int, NDArray[np.float64]] = {}
    for seed, value in values.items():
        found = evidence.ledger.scores(evidence.runs[arm][seed].id, figure) if value is not None else None
        if found is not None and value is not None and np.isclose(found[1].mean(), value):
            rows[seed] = found[1]
    if rows and all(value is None or seed in rows for seed, value in values.items()):
        return {seed: rows.get(seed) for seed in values}
    return dict(values)


def unpaired(evidence: Evidence, baseline: str, arm: str) -> str:
    """Say why the runs of two arms are no pairs, or nothing where they are."""
    ours = {seed: read_pairing(evidence.folder, run) for seed, run in evidence.runs[baseline].items()}
    theirs = {seed: read_pairing(evidence.folder, run) for seed, run in evidence.runs[arm].items()}
    both = [seed for seed in ours if seed in theirs and ours[seed] and theirs[seed]]
    hashes: list[dict[str, dict[str, str]]] = [{}, {}]
    for seed in both:
        common = ours[seed]["weights"].keys() & theirs[seed]["weights"].keys()
        for number, own in enumerate((ours[seed], theirs[seed])):
            weights = {name: own["weights"][name] for name in sorted(common)}
            hashes[number][str(seed)] = {
                "the initial weights": json.dumps(weights),
                "the training data": own["batches"],
                "the evaluation set": own["evaluation"],
            }
    return check_pairing(*hashes).reason if both else ""


def read_pairing(folder: Path, run: PlannedRun) -> dict[str, Any]:
    """Read what a run shares with those of its seed; nothing where it was not run."""
    file = folder / RUNS / run.id / "pairing.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def is_leak(findings: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether an audit found that the future is seen."""
    return any("leak" in str(one.get("name")) and not one.get("passed") for one in findings)
