"""A study whose ledger is made up: what each run gave is what a test says, and nothing is trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.studies.answers.study_folder import LEDGER, PLAN
from attnlab.studies.ledger.database import Delivery, Ledger
from attnlab.studies.run.execution import make_row
from attnlab.studies.study import Study
from tests.studies.samples import content

PAIRING = {"weights": {"wte": "w"}, "batches": "b", "evaluation": "e"}
BASE = [0.50, 0.52, 0.51, 0.49, 0.53]
HIGH = [0.60, 0.63, 0.60, 0.59, 0.64]
HOSTILE = "<script>alert(1)</script> </script> ]]> \"quoted\" & 'single' {{ 7 * 7 }} \\u003c"
ARMS = {"dot": "dot | softmax", "better": "cosine | softmax"}
LEAK = {
    "name": "causal leak", "verdict": "FAILED", "passed": False, "judged": True, "figure": 1.5, "bound": 0.0,
    "sentence": "It sees the future.", "where": "'mask(after)'", "parts": [], "data": {"map": [[1.0, 0.5], [0.1, 0.2]]},
}  # fmt: skip
START = {"attnlab": "0.1.0", "torch": "2.13.0", "commit": None, "command": "attnlab run study.toml --out here"}


class Made:
    """A folder with a ledger."""

    def __init__(self, folder: Path, obstacles: Mapping[str, str] | None = None, **changes: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.study = Study.of({**content(seeds=[1, 2, 3, 4, 5]), "arms": ARMS, **changes})
        self.planned = self.study.plan()
        self.ledger = Ledger(folder / LEDGER)
        self.ledger.add_runs([make_row(run) for run in self.planned])
        self.ledger.add_event("design", json.dumps(self.study.design.model_dump(mode="json"), sort_keys=True))
        self.ledger.add_event("started", json.dumps(START))
        arms = {name: [arm.mechanism] for name, arm in self.study.design.arms.items()}
        self.ledger.add_event(PLAN, json.dumps({
            "runs": [run.id for run in self.planned], "obstacles": dict(obstacles or {}),
            "data": {"recall": {"train": "a" * 64, "dev": "b" * 64}}, "audits": arms,
        }))  # fmt: skip

    def give(
        self, arm: str, values: Sequence[Any], name: str = "accuracy", costs: Sequence[Mapping[str, float]] = (),
        **changes: Any,
    ) -> Made:  # fmt: skip
        """Deliver the figures of an arm's first seeds; None is a run that diverged, a text what a ledger spells."""
        runs = [run for run in self.planned if run.arm == arm]
        for run, value, cost in zip(runs, values, costs or [{}] * len(runs), strict=False):
            last = None if value is None else {"step": 4, "primary": name, "figures": {name: value}}
            result = {
                "last": last, "step": 4, "seconds": 2.0, "tokens": 1000, "parameters": {"total": 120, "trained": 100},
                **cost,
            }  # fmt: skip
            status = "diverged" if value is None else "finished"
            given = {"metrics": [], "pairing": PAIRING, "ids": [], "scores": {}, **changes}
            attempt = self.ledger.begin(run.id, "here")
            self.ledger.deliver(Delivery(run.id, attempt, status, result, **given))
        return self

    def audit(self, arm: str, *findings: Mapping[str, Any]) -> Made:
        """Note what the audit of an arm's mechanism found."""
        passed = all(one["passed"] for one in findings)
        self.ledger.add_audit(self.study.design.arms[arm].mechanism, True, passed, findings)
        return self

    def done(self) -> Path:
        """Let go of the ledger; return the folder."""
        self.ledger.close()
        return self.folder


def history(num_steps: int = 5, every: int = 10, shift: float = 0.0, text: str = HOSTILE) -> list[dict[str, Any]]:
    """Return what a run writes down: losses, evaluations, traces, a sample and the loss of a sentence."""
    lines: list[dict[str, Any]] = []
    for step in range(every, every * (num_steps + 1), every):
        loss = 3 + shift - step / (every * num_steps)
        lines += [
            {"kind": "train", "step": step, "loss": loss},
            {"kind": "evaluation", "step": step, "primary": "accuracy", "accuracy": 1 / loss, "loss": loss},
            {"kind": "trace", "step": step, "weight_norm": 14 + loss, "h.0.attn.entropy": [loss, 1.0]},
        ]  # fmt: skip
    lines.append({"kind": "sample", "step": step, "name": "prompt 0", "prompt": text, "text": text})
    lines.append({"kind": "sentence", "step": step, "name": "sentence 0", "text": text, "loss": 2.5, "tokens": 4})
    return lines


def whole(folder: Path) -> Path:
    """Make a study that has everything a page can show, with hostile text wherever text is free."""
    arms = {**ARMS, "leaking": "dot | softmax | mask(after)", "worse": "dot | sigmoid"}
    made = Made(folder, {"leaking": "its audit finds a leak"}, arms=arms, question=HOSTILE, has_leaking=True)
    made.give("dot", BASE, metrics=history())
    made.give("better", HIGH, metrics=history(shift=-0.5))
    made.give("leaking", [0.9, 0.91, 0.9, 0.92, 0.9], metrics=history(shift=-1.0))
    made.give("worse", [0.4, 0.41, None, 0.39, 0.4], metrics=history(shift=0.5))
    made.audit("dot", {**LEAK, "passed": True, "verdict": "passed", "sentence": "No leak.", "where": ""})
    made.audit("leaking", LEAK)
    return made.done()


def large(folder: Path, num_arms: int = 10, num_seeds: int = 10) -> Path:
    """Make a study of many arms and seeds."""
    lines = [*ARMS.values(), *(f"dot | softmax | bypass(alpha={number / 100})" for number in range(1, num_arms - 1))]
    arms = {f"arm-{number}" if number else "dot": line for number, line in enumerate(lines)}
    made = Made(folder, arms=arms, seeds=list(range(num_seeds)))
    for number, arm in enumerate(arms):
        values = [0.5 + number / 100 + seed / 1000 for seed in range(num_seeds)]
        made.give(arm, values, metrics=history(num_steps=50, shift=number / 10))
    return made.done()
