"""A study over several sizes, horizons or tasks whose runs have given what a test says; nothing is trained."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.studies.answers.study_folder import LEDGER, PLAN
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.plan.planning import PlannedRun
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study

from .folders import PAIRING
from .samples import content

ARMS = {"dot": "dot | softmax", "cosine": "cosine | softmax"}
SIZES = {"small": 100_000, "medium": 200_000, "large": 400_000}
Gain = Callable[[PlannedRun], float]
"""How much a run of the variant is above one of the baseline."""


def three_sizes(**changes: Any) -> dict[str, Any]:
    """Return a study of three sizes with a trend."""
    made = {**content(seeds=[1, 2, 3, 4, 5]), "arms": dict(ARMS), "trend": {"over": "parameters"}}
    config = made["sizes"]["tiny"]["config"]
    made["sizes"] = {
        name: {"architecture": "gpt2", "config": {**config, "n_embd": 16 * (1 + at)}} for at, name in enumerate(SIZES)
    }
    return {**made, **changes}


def horizons(**changes: Any) -> dict[str, Any]:
    """Return a study of three horizons."""
    return {**content(seeds=[1, 2, 3, 4, 5]), "arms": dict(ARMS), "horizons": [2, 4, 8], **changes}


def two_tasks(**changes: Any) -> dict[str, Any]:
    """Return a study of two phases with a conclusion over both."""
    made = {**content(seeds=[1, 2, 3, 4, 5]), "arms": dict(ARMS), "conclusion": {"phases": ["recall", "again"]}}
    again = {**made["phases"][0], "name": "again", "segments": [{"steps": 5, "batch": 8}], "smallest": 0.04}
    return {**made, "phases": [*made["phases"], again], **changes}


def write_joint(folder: Path, plain: Mapping[str, Any], gain: Gain, floor: float = 0.1, **hashes: str) -> Path:
    """Write the folder of a study; hashes: by size, of what its runs are evaluated on."""
    study = Study.of(plain)
    planned = study.plan()
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(folder / LEDGER)
    ledger.add_event_if_new("design", json.dumps(study.design.model_dump(mode="json"), sort_keys=True))
    ledger.add_event("started", "{}")
    plan = {"runs": [run.id for run in planned], "obstacles": {}, "data": {}, "audits": {}}
    ledger.add_event_if_new(PLAN, json.dumps(plan))
    ledger.add_runs([make_row(run) for run in planned])
    for run in planned:
        rng = np.random.default_rng([run.seed, run.arm == "dot", *run.size.encode(), *run.phase.encode()])
        value = 0.5 + 0.005 * rng.normal() + (0.0 if run.arm == "dot" else gain(run))
        last = {"step": 4, "primary": "accuracy", "figures": {"accuracy": value}, "floor": floor, "ceiling": 1.0}
        result = {
            "status": "finished", "step": 4, "num_steps": 4, "tokens": 768, "seconds": 1.0, "last": last,
            "parameters": {"total": SIZES.get(run.size, 1000), "trained": 1},
        }  # fmt: skip
        pairing = {**PAIRING, "evaluation": hashes.get(run.size, "e")}
        ledger.deliver(Delivery(run.id, ledger.begin(run.id, "here"), "finished", result, [], pairing, [], {}))
    ledger.close()
    return folder
