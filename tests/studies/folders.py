"""The folder of a study whose runs have given what a test says: a ledger, and no training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.studies.answers.study_folder import LEDGER, PLAN
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study

from .samples import content

PAIRING = {"weights": {"wte": "w"}, "shapes": {"wte": [8, 4]}, "batches": "b", "evaluation": "e"}
DOT = (0.50, 0.52, 0.51, 0.49, 0.53)
BETTER = (0.60, 0.63, 0.60, 0.59, 0.64)
Given = Mapping[str, Sequence[float | None]]
"""The accuracies of each arm's first seeds; None is a run that diverged."""


def two_arms(**changes: Any) -> dict[str, Any]:
    """Return a study of two arms and five seeds as plain data."""
    arms = {"dot": "dot | softmax", "better": "cosine | softmax"}
    return {**content(seeds=[1, 2, 3, 4, 5]), "arms": arms, **changes}


def write_folder(folder: Path, given: Given, plain: Mapping[str, Any] | None = None, seconds: float = 60.0) -> Path:
    """Write the folder of a study in which these runs have ended; the loss is 1 − accuracy."""
    study = Study.of(plain or two_arms())
    planned = study.plan()
    folder.mkdir(parents=True)
    ledger = Ledger(folder / LEDGER)
    ledger.note_fact("study", study.design.name)
    ledger.add_event("design", json.dumps(study.design.model_dump(mode="json"), sort_keys=True))
    ledger.add_event("started", "{}")
    ledger.add_event(PLAN, json.dumps({"runs": [run.id for run in planned], "obstacles": {}, "data": {}, "audits": {}}))
    ledger.add_runs([make_row(run) for run in planned])
    for arm, values in given.items():
        runs = [run for run in planned if run.arm == arm]
        for run, value in zip(runs, values, strict=False):
            figures = {} if value is None else {"accuracy": value, "loss": 1 - value}
            last = {"step": 4, "primary": "accuracy", "figures": figures, "note": ""}
            status = "diverged" if value is None else "finished"
            result = {
                "status": status, "step": 4, "num_steps": 4, "tokens": 768,
                "last": None if value is None else last, "seconds": seconds, "parameters": {"total": 1, "trained": 1},
            }  # fmt: skip
            attempt = ledger.begin(run.id, "here")
            ledger.deliver(Delivery(run.id, attempt, status, result, [], PAIRING, [], {}))
    ledger.close()
    return folder
