"""A study: read, planned, audited, run and answered; the same call resumes a study that was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attnlab.audits import audit
from attnlab.audits.check import known_checks
from attnlab.errors import AttnlabError, StudyError
from attnlab.training.loop.precision import choose_precision
from attnlab.training.loop.stopping import StopRequest, stop_request
from attnlab.training.record.lock import lock_folder

from .answers.analysis import Answer
from .answers.registration import Declaration, register
from .answers.study_folder import FILE, Record, read
from .answers.study_folder import LEDGER as LEDGER
from .answers.study_folder import PLAN as PLAN
from .file.design import Arm, Design
from .file.mistakes import Origin, validate_design
from .file.reading import read_design
from .integrity import IntegrityFinding
from .integrity.study.audits import read_kind
from .integrity.study.examination import count_left_out, describe_left_out
from .ledger.database import Ledger
from .ledger.disk import refuse_network
from .plan.audit_keys import find_audited_task, is_causal_task, list_lines
from .plan.installed_arms import InstalledArm, mark_key
from .plan.planning import PlannedRun, hash_data, locate_sources, plan
from .plan.provenance import collect_provenance, read_plugins, write_command
from .run.cluster import connect_workers
from .run.execution import Execution, Tick, no_tick, start_workers_early
from .run.overlap import OverlapCounter, list_tasks

LEAKS = "its audit finds a leak"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Conclusion:
    """The outcome of a study so far; it has answers when every run has ended or was given up."""

    answers: list[Answer]
    num_ended: int
    num_runs: int
    failed: Mapping[str, str]
    """Runs that were given up, and why."""
    findings: Sequence[IntegrityFinding] = ()
    """Findings of the integrity checks on the study itself, faults first."""

    @classmethod
    def of(cls, record: Record) -> Conclusion:
        """Conclude from the record of a study."""
        findings = record.findings if record.is_whole else ()
        return cls(record.answers, record.num_ended, len(record.runs), record.failed, findings)

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
    """The budget that the design was read with."""
    assign: Mapping[str, Any] | None = None
    """The settings that the design was read with."""

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
        """Make a study of plain data with the keys of a study file."""
        return cls(validate_design(dict(content), Origin("the study")))

    @property
    def default_folder(self) -> str:
        """Where a study is run unless another folder is named."""
        return f"out/{self.design.name}"

    def plan(self, leaking: Collection[str] = ()) -> list[PlannedRun]:
        """Return the runs of the study; those of leaking arms are also evaluated without access to future tokens."""
        return plan(self.design, self.sources, self.threads, self.plugins, leaking)

    def run(
        self, out: str | Path, workers: int | None = None, say: Say = print, *, on: str = "local", tick: Tick = no_tick
    ) -> Conclusion:  # fmt: skip
        """Run what has not ended, and answer; a folder that holds another study, or is in use, is refused.

        workers: runs at a time, by default 1 locally and all that fit on Ray. on: "local" or "ray". tick: called
        several times a second while runs are going.
        """
        workers = 1 if workers is None and on == "local" else workers
        if workers is not None and workers < 1:
            raise StudyError(f"workers are at least 1, not {workers}")
        planned = self.plan()
        with connect_workers(on, self.threads), self._open_ledger(out) as (folder, ledger), stop_request() as stop:
            self.enter(folder, ledger, workers, on)
            results = ledger.results()
            is_needed = on == "local" and any(run.id not in results for run in planned)
            with start_workers_early(self.plugins, is_needed) as server:
                planned = self._prepare(ledger, planned, say, stop)
                Execution(
                    folder, ledger, planned, say, stop, workers, self.plugins, self._choose_precision(ledger), tick, on,
                    server,
                ).go()  # fmt: skip
            return Conclusion.of(read(folder, ledger))

    def register(self, out: str | Path) -> Declaration:
        """Write what the study declares into its folder, before any verdict is printed."""
        with self._open_ledger(out) as (_, ledger):
            ledger.note_fact("study", self.design.name)
            return register(ledger, self.design)

    @contextmanager
    def _open_ledger(self, out: str | Path) -> Iterator[tuple[Path, Ledger]]:
        folder = Path(out).expanduser().resolve()
        refuse_network(folder / LEDGER)
        with lock_folder(folder), closing(Ledger(folder / LEDGER)) as ledger:
            yield folder, ledger

    def _prepare(self, ledger: Ledger, planned: list[PlannedRun], say: Say, stop: StopRequest) -> list[PlannedRun]:
        """Audit the arms and check the data; return the runs to be trained."""
        audits = self._audit_arms(ledger, say, stop)
        leaking = self._find_leaking(ledger, audits, say)
        if leaking and self.design.has_leaking:
            planned = self.plan(leaking)
        trained = planned if self.design.has_leaking else [run for run in planned if run.arm not in leaking]
        contents = hash_data(self.design, self.sources)
        ledger.say_news(PLAN, json.dumps({
            "runs": [run.id for run in trained], "obstacles": leaking, "data": contents, "audits": audits,
        }))  # fmt: skip
        if others := count_left_out(ledger, {run.id for run in trained}):
            say(f"{describe_left_out(others)}; they stay in the ledger")
        sources = locate_sources(self.design, self.sources or {})
        OverlapCounter(ledger, sources, contents, say, stop).count(list_tasks(self.design))
        return trained

    def enter(self, folder: Path, ledger: Ledger, workers: int | None, on: str = "local") -> None:
        """Write the design, versions and command into the ledger, and keep the study file beside it."""
        own = read_plugins(self.plugins)
        ledger.note_fact("study", self.design.name)
        ledger.say_news("design", json.dumps(self.design.model_dump(mode="json")))
        again = write_command(
            str(self.file or FILE), str(folder), self.budget, self.assign, self.sources, self.plugins,
            threads=self.threads, **({} if workers is None else {"workers": workers}),
        )  # fmt: skip
        if on != "local":
            again += f" --on {on}" + (" --workers 1" if workers == 1 else "")
        ledger.say("started", json.dumps({**collect_provenance(), "command": again, "plugins": own}))
        if self.file is not None and self.file.is_file():
            content, kept = self.file.read_bytes(), folder / FILE
            if not kept.exists() or kept.read_bytes() != content:
                aside = folder / f".{FILE}.writing"
                aside.write_bytes(content)
                aside.replace(kept)

    def _choose_precision(self, ledger: Ledger) -> str | None:
        """Return what `auto` is in this study: chosen once, so that all its runs have the same."""
        if all(phase.precision != "auto" for phase in self.design.phases):
            return None
        known = ledger.fact("precision")
        if known is None:
            known = choose_precision("auto", torch.device("cuda" if torch.cuda.is_available() else "cpu")).name
            ledger.note_fact("precision", known)
        return known

    @property
    def is_causal(self) -> bool:
        """Whether arms are audited with a causal mask."""
        return is_causal_task(find_audited_task(self.design))

    def _audit_arms(self, ledger: Ledger, say: Say, stop: StopRequest) -> dict[str, list[str]]:
        """Audit every arm once, its mechanism alone and installed in every size; return the audits' keys by arm."""
        audited: dict[str, list[str]] = {}
        for name, arm in self.design.arms.items():
            installed = {mark_key(one.key, one.line, self.plugins): one for one in self.installed(arm)}
            lines = {mark_key(line, line, self.plugins): line for line in list_lines(self.design, name)}
            missing = [key for key in (*lines, *installed) if ledger.audit(key, self.is_causal) is None]
            if missing:
                say(f"{name}: auditing {', '.join(lines.values())}")
            for key in missing:
                if stop:
                    raise KeyboardInterrupt
                if key not in installed:
                    ledger.add_audit(key, self.is_causal, *self._audit_mechanism(lines[key]))
                    continue
                try:
                    ledger.add_audit(key, self.is_causal, *installed[key].audit(self.is_causal))
                except AttnlabError as error:
                    # If its runs cannot be built either, each fails with this message.
                    say(f"{name}: {key} cannot be audited: {error}")
            audited[name] = [key for key in (*lines, *installed) if ledger.audit(key, self.is_causal) is not None]
        return audited

    def _audit_mechanism(self, line: str) -> tuple[bool, list[Mapping[str, Any]]]:
        """Audit a mechanism alone; return whether it passed, and its findings."""
        # Its cost depends on the machine, and decides nothing here.
        known = known_checks("mechanism").values()
        checks = [check.name for check in known if not check.is_slow and check.kind != "cost"]
        found = audit(line, causal=self.is_causal, checks=checks)
        return found.passed, [one.record() for one in found.findings.values()]

    def installed(self, arm: Arm) -> list[InstalledArm]:
        """Return an arm in every size."""
        task = find_audited_task(self.design)
        return [InstalledArm(arm, name, size, task) for name, size in self.design.sizes.items()]

    def _find_leaking(self, ledger: Ledger, audits: Mapping[str, Sequence[str]], say: Say) -> dict[str, str]:
        """Return the arms of which an audit finds that they see the future, and say what failed."""
        leaking = []
        for name, keys in audits.items():
            findings = [one for key in keys for one in ledger.audit(key, self.is_causal) or ()]
            failed = [one for one in findings if not one["passed"]]
            if failed:
                say(f"{name}: its audit failed: {', '.join(dict.fromkeys(str(one['name']) for one in failed))}")
            if any(read_kind(one) == "leak" for one in failed):
                leaking.append(name)
        if self.design.baseline in leaking and not self.design.has_leaking:
            raise StudyError(
                f"the baseline '{self.design.baseline}' sees the future, so that nothing can be compared with it; take "
                "another one (has_leaking = true trains it all the same)"
            )
        if leaking and not self.design.has_leaking:
            say(f"not trained, since they see the future: {', '.join(leaking)} (has_leaking = true trains them)")
        return dict.fromkeys(leaking, LEAKS)
