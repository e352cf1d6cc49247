"""A study: read, planned, audited, run, and answered; the same call goes on where it stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.audits import audit
from attnlab.errors import StudyError
from attnlab.tasks import load as load_task
from attnlab.training.record import locked
from attnlab.training.stopping import stop_request

from .analysis import Answer, analyse, is_leak
from .design import Design
from .execution import Execution
from .ledger import Ledger
from .plan import PlannedRun, plan
from .text import check, read_design

LEDGER, FILE = "ledger.sqlite", "study.toml"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Conclusion:
    """What came out of a study so far."""

    answers: list[Answer]
    num_ended: int
    num_runs: int
    failed: Mapping[str, str]
    """Runs that were given up, and why."""

    @property
    def is_whole(self) -> bool:
        """Whether every run has ended."""
        return self.num_ended == self.num_runs


@dataclass(frozen=True)
class Study:
    """A design, and where the data it names is."""

    design: Design
    file: Path | None = None
    sources: Mapping[str, str] | None = None
    threads: int = 1

    @classmethod
    def load(
        cls, path: str | Path, budget: str | None = None, *, assign: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None, threads: int = 1,
    ) -> Study:  # fmt: skip
        """Read a study file."""
        return cls(read_design(path, budget, assign), Path(path), data, threads)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Study:
        """Make a study of plain data, as a file would say it."""
        return cls(check(dict(content), "", "the study"))

    def plan(self) -> list[PlannedRun]:
        """Return the runs of the study."""
        return plan(self.design, self.sources, self.threads)

    def run(self, out: str | Path, workers: int = 1, say: Say = print) -> Conclusion:
        """Run what has not ended, and answer; a folder that holds another study, or is in use, is refused."""
        if workers < 1:
            raise StudyError(f"workers are at least 1, not {workers}")
        folder = Path(out)
        planned = self.plan()
        with locked(folder), stop_request() as stop:
            ledger = Ledger(folder / LEDGER)
            try:
                ledger.note_fact("study", self.design.name)
                self.leave_file(folder)
                trained = self.audited(planned, ledger, say)
                work = Execution(folder, ledger, trained, workers, say, stop)
                work.go()
                ended = ledger.results()
                answers = analyse(self.design, trained, ledger, folder)
                failed = {run.title: work.given_up[run.id] for run in trained if run.id in work.given_up}
                return Conclusion(answers, sum(run.id in ended for run in trained), len(trained), failed)
            finally:
                ledger.close()

    def leave_file(self, folder: Path) -> None:
        """Keep the study file beside its results."""
        if self.file is not None and not (folder / FILE).exists():
            shutil.copyfile(self.file, folder / FILE)

    def audited(self, planned: list[PlannedRun], ledger: Ledger, say: Say) -> list[PlannedRun]:
        """Audit every arm once, and leave out those that leak, unless they were asked for."""
        known = ledger.audits()
        is_causal = any(load_task(stage.task).head == "AutoModelForCausalLM" for stage in self.design.stages)
        for name, arm in self.design.arms.items():
            if name not in known:
                found = audit(arm.mechanism, causal=is_causal)
                ledger.add_audit(name, arm.mechanism, found.passed, [one.record() for one in found.findings.values()])
                wrong = [check for check, one in found.findings.items() if not one.passed]
                if wrong:
                    say(f"{name}: its audit failed: {', '.join(wrong)}")
        leaking = {arm for arm, (passed, found) in ledger.audits().items() if not passed and is_leak(found)}
        if leaking and not self.design.has_leaking:
            say(
                f"not trained, since they see the future: {', '.join(sorted(leaking))} (has_leaking = true trains them)"
            )
            return [run for run in planned if run.arm not in leaking]
        return planned
