"""Studies for tests: one whose ledger holds given results, without any training, and one of small language models."""

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


class RecordedStudy:
    """A study of two arms. Runs without given results are sound, each with its own values."""

    def __init__(self, folder: Path, seeds: Sequence[int] = SEEDS, **changes: Any) -> None:
        plain = content(seeds=list(seeds))
        plain["arms"] = {"dot": "dot | softmax", "better": "cosine | softmax"}
        self.folder = folder
        self.study = Study.of({**plain, **changes})
        self.runs = {(run.arm, run.seed): run for run in self.study.plan()}
        folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.ledger.add_runs([make_row(run) for run in self.runs.values()])
        self.ledger.add_event("design", json.dumps(self.study.design.model_dump(mode="json")))
        self.ledger.add_event("started", "{}")

    def plan(self, obstacles: Mapping[str, str] | None = None, failed: Mapping[str, Any] | None = None) -> None:
        """Record the plan. failed: the name of a failing check, by the audited line."""
        audits = {}
        for name, arm in self.study.design.arms.items():
            audits[name] = [arm.mechanism, f"{arm.mechanism} in tiny (0)"]
            for key in audits[name]:
                wrong = (failed or {}).get(key)
                found = [{"name": wrong, "passed": False, "sentence": f"It fails: {wrong}."}] if wrong else []
                self.ledger.add_audit(key, True, not wrong, found)
        runs = [run.id for run in self.runs.values()]
        said = {"runs": runs, "obstacles": obstacles or {}, "data": DATA, "audits": audits}
        self.ledger.add_event("plan", json.dumps(said))

    def give(
        self, arm: str, seed: int, accuracy: Sequence[float] | None = None, loss: Sequence[float] | None = None,
        steps: Sequence[int] = STEPS, recorded: float | None = None, collapse: Mapping[str, Any] | None = None,
        status: str = "finished", before: Sequence[Mapping[str, Any]] = (), **result: Any,
    ) -> None:  # fmt: skip
        """Deliver a run: the figures of each step, and scores of examples whose mean is the last accuracy.

        recorded: an accuracy of the result that differs from that of the evaluation. before: earlier lines.
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
        self.ledger.deliver(Delivery(run.id, attempt, status, given, [*before, *lines], PAIRING, ids, scores))

    def give_others(self) -> None:
        """Deliver all runs without given results."""
        known = self.ledger.results()
        for (arm, seed), run in self.runs.items():
            if run.id not in known:
                self.give(arm, seed)

    def findings(self) -> tuple[IntegrityFinding, ...]:
        """Deliver the other runs, and examine the study."""
        self.give_others()
        if not self.ledger.events("plan"):
            self.plan()
        self.ledger.close()
        with open_record(self.folder) as record:
            assert isinstance(record, Record)
            return record.findings


def accuracies(run: PlannedRun) -> list[float]:
    """Draw the accuracies of a run."""
    draw = np.random.default_rng([run.seed, len(run.arm)])
    return [float(draw.binomial(NUM_EXAMPLES, share)) / NUM_EXAMPLES for share in (0.6, 0.7)]


def losses(run: PlannedRun) -> list[float]:
    """Draw the losses of a run."""
    draw = np.random.default_rng([run.seed, len(run.arm), 1])
    return [float(value) for value in draw.normal((2.0, 1.5), 0.05)]


def faults(found: tuple[IntegrityFinding, ...]) -> list[str]:
    """Name the checks that found a fault."""
    return [finding.check for finding in found if finding.is_fault]


def notes(found: tuple[IntegrityFinding, ...]) -> list[str]:
    """Name the checks that found what is no fault."""
    return [finding.check for finding in found if not finding.is_fault]


def sentence(found: tuple[IntegrityFinding, ...], check: str) -> str:
    """Return what was found by a check."""
    return next(finding.sentence for finding in found if finding.check == check)


def prose(folder: Path, num_shared: int) -> Path:
    """Write a text to train on and one that is held out, with lines that stand in both but for case and spaces."""
    names = ["Ada", "Bruno", "Clara", "Dario", "Elsa", "Felix"]
    verbs = ["saw", "met", "heard", "knew", "drew"]
    lines = [f"{a} {verb} {b} near the old mill" for a in names for verb in verbs for b in names if a != b]
    train, dev = lines[::2][:60], lines[1::2][:12]
    dev[:num_shared] = [line.upper().replace(" ", "  ") for line in train[:num_shared]]
    (folder / "train.txt").write_text("\n".join(train) + "\n", encoding="utf-8")
    (folder / "dev.txt").write_text("\n".join([*dev, " = = The mill of Ada and Bruno = = "]) + "\n", encoding="utf-8")
    return folder


def text_study(folder: Path, arms: dict[str, Any], num_shared: int = 0, **changes: Any) -> Study:
    """Return a study of small language models on such a text."""
    plain = content(seeds=[1, 2], has_leaking=True)
    prose(folder, num_shared)
    plain["arms"] = arms
    plain["data"] = {"text": {"train": str(folder / "train.txt"), "dev": str(folder / "dev.txt")}}
    plain["sizes"]["tiny"]["tokenizer"] = "word:60"
    plain["phases"] = [{
        "name": "text", "task": "clm", "task_settings": {"max_len": 16}, "data": "text", "precision": "fp32",
        "segments": [{"steps": 6, "batch": 8}], "smallest": 1.0, "optimizer": {"lr": 1e-2},
    }]  # fmt: skip
    return Study.of({**plain, **changes})
