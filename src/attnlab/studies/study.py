"""A study: read, planned, audited, run, and answered; the same call goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attnlab.audits import audit
from attnlab.errors import StudyError
from attnlab.tasks import load as load_task
from attnlab.training.precision import choose_precision
from attnlab.training.record import locked
from attnlab.training.stopping import StopRequest, stop_request

from .analysis import Answer, analyse
from .design import Design
from .disk import refuse_network
from .execution import Execution
from .ledger import Ledger
from .mistakes import Origin, check
from .plan import PlannedRun, contents_of_study, plan
from .provenance import command, provenance
from .text import read_design

LEDGER, FILE = "ledger.sqlite", "study.toml"
PLAN = "plan"
LEAKS = "its audit finds a leak"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Conclusion:
    """What came out of a study so far; answers come when no run is left to wait for."""

    answers: list[Answer]
    num_ended: int
    num_runs: int
    failed: Mapping[str, str]
    """Runs that were given up, and why."""

    @property
    def is_whole(self) -> bool:
        """Whether every run has ended or was given up."""
        return self.num_ended + len(self.failed) == self.num_runs


@dataclass(frozen=True)
class Study:
    """A design, and where the data it names is."""

    design: Design
    file: Path | None = None
    sources: Mapping[str, str] | None = None
    threads: int = 1
    plugins: Sequence[str] = ()
    """Python files with stages of your own, for the processes that train."""
    budget: str | None = None
    assign: Mapping[str, Any] | None = None
    """The budget and the settings that the design was read with, for the record."""

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise StudyError(f"threads are at least 1, not {self.threads}")

    @classmethod
    def load(
        cls, path: str | Path, budget: str | None = None, *, assign: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
    ) -> Study:  # fmt: skip
        """Read a study file, with one of its budgets, settings by their paths and places of its data."""
        design = read_design(path, budget, assign)
        return cls(design, Path(path), data, threads, plugins, budget, assign)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Study:
        """Make a study of plain data, as a file would say it."""
        return cls(check(dict(content), Origin("the study")))

    def plan(self) -> list[PlannedRun]:
        """Return the runs of the study."""
        return plan(self.design, self.sources, self.threads, self.plugins)

    def run(self, out: str | Path, workers: int = 1, say: Say = print) -> Conclusion:
        """Run what has not ended, and answer; a folder that holds another study, or is in use, is refused."""
        if workers < 1:
            raise StudyError(f"workers are at least 1, not {workers}")
        folder = Path(out).expanduser().resolve()
        planned = self.plan()
        refuse_network(folder / LEDGER)
        with locked(folder), stop_request() as stop:
            ledger = Ledger(folder / LEDGER)
            try:
                self.enter(folder, ledger, workers)
                leaking = self.leaking(ledger, say, stop)
                trained = planned if self.design.has_leaking else [run for run in planned if run.arm not in leaking]
                ledger.say_news(PLAN, json.dumps({
                    "runs": [run.id for run in trained], "obstacles": leaking,
                    "data": contents_of_study(self.design, self.sources),
                }))  # fmt: skip
                work = Execution(
                    folder, ledger, trained, say, stop, workers, self.plugins, self.precision(ledger)
                )  # fmt: skip
                work.go()
                failed = {run.title: work.given_up[run.id] for run in trained if run.id in work.given_up}
                found = Conclusion([], sum(run.id in work.statuses for run in trained), len(trained), failed)
                if not found.is_whole:
                    return found  # a verdict on the seeds that happen to be there would be a look that nobody declared
                answers = analyse(self.design, trained, ledger, leaking)
                return Conclusion(answers, found.num_ended, found.num_runs, failed)
            finally:
                ledger.close()

    def enter(self, folder: Path, ledger: Ledger, workers: int) -> None:
        """Write down what study this is, and with what it is run; keep its file beside its results."""
        ledger.note_fact("study", self.design.name)
        ledger.say_news("design", json.dumps(self.design.model_dump(mode="json"), sort_keys=True))
        again = command(
            str(self.file or FILE), str(folder), self.budget, self.assign, self.sources, self.plugins, workers=workers,
            threads=self.threads,
        )  # fmt: skip
        ledger.say("started", json.dumps({**provenance(), "command": again}))
        if self.file is not None and self.file.is_file():
            content, kept = self.file.read_bytes(), folder / FILE
            if not kept.exists() or kept.read_bytes() != content:
                aside = folder / f".{FILE}.writing"
                aside.write_bytes(content)
                aside.replace(kept)

    def precision(self, ledger: Ledger) -> str | None:
        """Return what `auto` is in this study: tried once, so that all its runs take the same."""
        if all(stage.precision != "auto" for stage in self.design.stages):
            return None
        known = ledger.fact("precision")
        if known is None:
            known = choose_precision("auto", torch.device("cuda" if torch.cuda.is_available() else "cpu")).name
            ledger.note_fact("precision", known)
        return known

    def leaking(self, ledger: Ledger, say: Say, stop: StopRequest) -> dict[str, str]:
        """Audit every arm's mechanism once; return those that see the future, and say so."""
        is_causal = any(load_task(stage.task).head == "AutoModelForCausalLM" for stage in self.design.stages)
        leaking = []
        for name, arm in self.design.arms.items():
            findings = ledger.audit(arm.mechanism, is_causal)
            if findings is None:
                if stop:
                    raise KeyboardInterrupt
                say(f"{name}: auditing {arm.mechanism}")
                found = audit(arm.mechanism, causal=is_causal)
                findings = [one.record() for one in found.findings.values()]
                ledger.add_audit(arm.mechanism, is_causal, found.passed, findings)
            wrong = [str(one["name"]) for one in findings if not one["passed"]]
            if wrong:
                say(f"{name}: its audit failed: {', '.join(wrong)}")
            if any("leak" in one for one in wrong):
                leaking.append(name)
        if self.design.baseline in leaking and not self.design.has_leaking:
            raise StudyError(
                f"the baseline '{self.design.baseline}' sees the future, so that nothing can be compared with it; take "
                "another one (has_leaking = true trains it all the same)"
            )
        if leaking and not self.design.has_leaking:
            say(f"not trained, since they see the future: {', '.join(leaking)} (has_leaking = true trains them)")
        return dict.fromkeys(leaking, LEAKS)
