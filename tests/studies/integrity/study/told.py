"""A study whose ledger says what a test tells it to, without any training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.studies.answers.study_folder import Record, open_record
from attnlab.studies.integrity import IntegrityFinding
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.plan.planning import PlannedRun
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study
from tests.studies.samples import content

PAIRING = {"weights": {"wte": "w"}, "batches": "b", "evaluation": "e"}
DATA = {"recall": {"train": "t", "dev": "d"}}
NUM_EXAMPLES = 200
SEEDS = [1, 2, 3, 4, 5]
STEPS = (10, 20)


class Told:
    """A study of two arms; runs that a test says nothing of are sound, each with values of its own."""

    def __init__(self, folder: Path, seeds: Sequence[int] = SEEDS, **changes: Any) -> None:
        plain = content(seeds=list(seeds))
        plain["arms"] = {"dot": "dot | softmax", "better": "cosine | softmax"}
        self.folder = folder
        self.study = Study.of({**plain, **changes})
        self.runs = {(run.arm, run.seed): run for run in self.study.plan()}
        folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.ledger.add_runs([make_row(run) for run in self.runs.values()])
        self.ledger.say("design", json.dumps(self.study.design.model_dump(mode="json")))
        self.ledger.say("started", "{}")

    def plan(self, obstacles: Mapping[str, str] | None = None, failed: Mapping[str, Any] | None = None) -> None:
        """Write down the plan. failed: the name of a check that fails, by what is audited."""
        audits = {}
        for name, arm in self.study.design.arms.items():
            audits[name] = [arm.mechanism, f"{arm.mechanism} in tiny (0)"]
            for key in audits[name]:
                wrong = (failed or {}).get(key)
                found = [{"name": wrong, "passed": False, "sentence": f"It fails: {wrong}."}] if wrong else []
                self.ledger.add_audit(key, True, not wrong, found)
        runs = [run.id for run in self.runs.values()]
        said = {"runs": runs, "obstacles": obstacles or {}, "data": DATA, "audits": audits}
        self.ledger.say("plan", json.dumps(said))

    def give(
        self, arm: str, seed: int, accuracy: Sequence[float] | None = None, loss: Sequence[float] | None = None,
        steps: Sequence[int] = STEPS, recorded: float | None = None, collapse: Mapping[str, Any] | None = None,
        status: str = "finished", **result: Any,
    ) -> None:  # fmt: skip
        """Deliver a run: figures of each step, scores of examples whose mean the last accuracy is.

        recorded: an accuracy that the result has instead of that of the evaluation.
        """
        run = self.runs[arm, seed]
        accuracy, loss = accuracy or accuracies(run), loss or losses(run)
        own = {} if collapse is None else {"collapse": collapse}
        lines = [
            {"kind": "evaluation", "step": step, "task": "x", "primary": "accuracy", "accuracy": a, "loss": b, **own}
            for step, a, b in zip(steps, accuracy, loss, strict=True)
        ]
        figures = {"accuracy": accuracy[-1] if recorded is None else recorded, "loss": loss[-1]}
        last = {"step": steps[-1], "primary": "accuracy", "figures": figures, "note": ""}
        given = {"last": last, "tokens": 1000 + seed, "parameters": {"trained": 500, "total": 500}, **result}
        num_right = round(accuracy[-1] * NUM_EXAMPLES)
        scores = {"accuracy": [1.0] * num_right + [0.0] * (NUM_EXAMPLES - num_right)}
        ids = [str(number) for number in range(NUM_EXAMPLES)]
        attempt = self.ledger.begin(run.id, "here")
        self.ledger.deliver(Delivery(run.id, attempt, status, given, lines, PAIRING, ids, scores))

    def give_others(self) -> None:
        """Deliver all runs that a test said nothing of."""
        known = self.ledger.results()
        for (arm, seed), run in self.runs.items():
            if run.id not in known:
                self.give(arm, seed)

    def findings(self) -> tuple[IntegrityFinding, ...]:
        """Deliver what is missing, and let the study examine itself."""
        self.give_others()
        if not self.ledger.events("plan"):
            self.plan()
        self.ledger.close()
        with open_record(self.folder) as record:
            assert isinstance(record, Record)
            return record.findings


def accuracies(run: PlannedRun) -> list[float]:
    """Return accuracies that are a run's own."""
    draw = np.random.default_rng([run.seed, len(run.arm)])
    return [float(draw.binomial(NUM_EXAMPLES, share)) / NUM_EXAMPLES for share in (0.6, 0.7)]


def losses(run: PlannedRun) -> list[float]:
    """Return losses that are a run's own."""
    draw = np.random.default_rng([run.seed, len(run.arm), 1])
    return [float(value) for value in draw.normal((2.0, 1.5), 0.05)]
