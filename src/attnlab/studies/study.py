"""A study: read, planned, audited, run and analyzed; the same call resumes a study that was stopped."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from attnlab.audits import audit
from attnlab.audits.check import known_checks
from attnlab.errors import AttnlabError, StudyError
from attnlab.inputs import expand_path
from attnlab.notebook import Facts, Showable, in_notebook
from attnlab.training.loop.precision import choose_precision
from attnlab.training.loop.stopping import StopRequest, stop_request
from attnlab.training.record.files import write_through
from attnlab.training.record.lock import lock_folder, refuse_foreign_files
from attnlab.training.tracking.trackers import check_trackers

from .answers.analysis import Answer
from .answers.joint_answer import JointAnswer
from .answers.registration import Declaration, digest, register
from .answers.study_folder import FILE, LEDGER, PLAN, Record, read
from .answers.target import TargetAnswer
from .cost.matching import match_arms
from .file.design import Design
from .file.mistakes import Origin, validate_design
from .file.reading import read_design
from .file.smoke_test import describe_smoke_test
from .integrity import IntegrityFinding
from .integrity.study.audits import read_kind
from .integrity.study.examination import count_left_out, describe_left_out
from .ledger.database import Ledger
from .ledger.disk import refuse_network
from .notebook_view import NotebookView
from .plan.audit_keys import LEAKS, find_audited_task, is_causal_task, list_lines
from .plan.installed_arms import InstalledArm, mark_key
from .plan.learning_budget import list_budget_warnings
from .plan.matching import Matching
from .plan.model_limits import check_model_limits
from .plan.own_text import drop_num_dev
from .plan.planner import Planner, check_named_tuning_data
from .plan.planning import PlannedRun, describe_held_out, hash_data, locate_sources
from .plan.provenance import collect_provenance, read_plugins, write_command
from .plan.search import Scores
from .run.cluster import connect_workers
from .run.execution import Execution, PlanMore, Say, Tick, start_workers_early
from .run.matching_record import record_matching
from .run.overlap import count_overlaps
from .run.trials import note_planned, score_results

NOTICE = (
    "stopping: the current check is finished first; the same command goes on, and audits that are complete are not "
    "repeated (a second Ctrl-C stops at once)"
)
"""What a stop prints before anything is trained."""


@dataclass(frozen=True, repr=False)
class Conclusion(Showable):
    """The results of a study so far; it has answers when every run has ended or was given up."""

    answers: list[Answer]
    num_ended: int
    num_runs: int
    failed: Mapping[str, str]
    """Runs that were given up, and why."""
    findings: Sequence[IntegrityFinding] = ()
    """Findings of the integrity checks, faults first."""
    joint_answers: Sequence[JointAnswer] = ()
    """Answers over sizes, horizons and tasks."""
    targets: Sequence[TargetAnswer] = ()
    """What each arm reaches of the targets."""
    smoke_test: str = ""
    """That the study is only a smoke test, and what answers its question; empty if it is no smoke test."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """Conclude from the record of a study."""
        findings = record.findings if record.is_whole else ()
        return cls(
            record.answers, record.num_ended, len(record.runs), record.failed, findings, record.joint_answers,
            record.targets, describe_smoke_test(record.design),
        )  # fmt: skip

    @property
    def is_whole(self) -> bool:
        """Whether every run has ended or was given up."""
        return self.num_ended + len(self.failed) == self.num_runs

    def facts(self) -> Facts:
        """Return a row for each answer, and what the integrity checks found."""
        rows = [(answer.place, answer.figure, answer.verdict) for answer in self.answers]
        rows += [(one.place, one.figure, one.verdict) for one in self.joint_answers]
        rows += [(f"{one.arm}, {one.phase}, {one.size}", one.figure, one.verdict) for one in self.targets]
        rows += [(one.check, "FAULT" if one.is_fault else "note", one.sentence) for one in self.findings]
        rows += [(run, "failed", reason) for run, reason in self.failed.items()]
        left = "" if self.is_whole else "; the same call resumes the study"
        ended = "; ".join(filter(None, (f"{self.num_ended} of {self.num_runs} runs have ended{left}", self.smoke_test)))
        return Facts("Verdicts" if self.answers else "No verdict yet", ended, rows=rows)


@dataclass(frozen=True, repr=False)
class Study(Showable):
    """A design, and the paths of its data."""

    design: Design
    file: Path | None = None
    sources: Mapping[str, str] | None = None
    threads: int = 1
    plugins: Sequence[str] = ()
    """Python files that register your own stages, for the processes that train."""
    budget: str | None = None
    """The budget that the design was read with."""
    assign: Mapping[str, Any] | None = None
    """The settings that the design was read with."""
    trackers: Sequence[str] = ()
    """Trackers of every run, instead of those of its phase."""

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise StudyError(f"threads must be at least 1, not {self.threads}")

    @classmethod
    def load(
        cls, path: str | Path, budget: str | None = None, *, assign: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
        trackers: Sequence[str] = (),
    ) -> Self:  # fmt: skip
        """Read a study file, with one of its budgets, settings by their paths and paths of its data."""
        design = drop_num_dev(read_design(path, budget, assign), data or (), assign or ())
        return cls(design, Path(path), data, threads, plugins, budget, assign, trackers)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Make a study of plain data with the keys of a study file."""
        return cls(validate_design(dict(content), Origin("the study")))

    def facts(self) -> Facts:
        """Return the arms, sizes and phases."""
        design = self.design
        rows: list[tuple[object, ...]] = [
            (f"arm{', baseline' * (name == design.baseline)}", name, arm.mechanism) for name, arm in design.arms.items()
        ]
        rows += [("size", name, size.architecture or size.checkpoint) for name, size in design.sizes.items()]
        rows += [("phase", phase.name, f"{phase.task} on {phase.data}") for phase in design.phases]
        rows += [("seeds", len(design.seeds), ", ".join(map(str, design.seeds)))]
        return Facts(design.name, design.question, rows=rows)

    @property
    def default_folder(self) -> str:
        """The folder in which a study is run by default."""
        return f"out/{self.design.name}"

    def plan(self, leaking: Collection[str] = (), out: str | Path | None = None) -> list[PlannedRun]:
        """Return the runs of the study; those of leaking arms are also evaluated without access to future tokens.

        With a search, its trials are among them, and the first of each counts as the best. out: the folder of the
        study, whose arms are matched as when it was started.
        """
        return self.make_planner(leaking, out).list_runs(None)

    def make_planner(self, leaking: Collection[str] = (), out: str | Path | None = None) -> Planner:
        """Return what plans the runs, with its arms matched as in the folder of the study if that exists."""
        planner, file = self._make_planner(leaking), None if not out else expand_path(out) / LEDGER
        if file is None or not file.exists():
            return self._match(planner, None, _ignore, leaking)
        with closing(Ledger(file, is_new=False)) as ledger:
            return self._match(planner, ledger, _ignore, leaking)

    def _make_planner(self, leaking: Collection[str] = (), matching: Matching | None = None) -> Planner:
        return Planner(self.design, self.sources, self.threads, self.plugins, leaking, self.trackers, matching)

    def _match(self, planner: Planner, ledger: Ledger | None, say: Say, leaking: Collection[str] = ()) -> Planner:
        """Return a planner whose arms are equal in what the study matches; the given one if they need not be."""
        if not self.design.needs_costs:
            return planner
        precision = None if ledger is None else ledger.fact("precision")
        matching = match_arms(self.design, planner.list_runs(None), ledger, self.plugins, precision, say)
        return self._make_planner(leaking, matching)

    def run(
        self, out: str | Path, workers: int | None = None, say: Say = print, *, on: str = "local", tick: Tick = None
    ) -> Conclusion:  # fmt: skip
        """Execute the runs that have not ended, and analyze; a folder with another study, or in use, is refused.

        workers: runs at a time, by default 1 locally and all that fit on Ray. on: "local" or "ray". tick: called
        several times a second during execution. In a notebook both show a progress bar by default.
        """
        if say is print and tick is None and in_notebook():
            view = NotebookView(out)
            try:
                return self.run(out, workers, view.say, on=on, tick=view.tick)
            finally:
                view.close()
        workers = 1 if workers is None and on == "local" else workers
        if workers is not None and workers < 1:
            raise StudyError(f"workers must be at least 1, not {workers}")
        planner = self._make_planner()
        if on == "local":  # on a cluster, each node has packages of its own
            for run in planner.list_runs(None):
                check_trackers(run.run.trackers)
        self.check_limits()
        with connect_workers(on, self.threads), self._open_ledger(out) as (folder, ledger), stop_request() as stop:
            self.enter(folder, ledger, workers, on)
            self._choose_precision(ledger)
            with stop.announce(NOTICE):
                planner = self._match(planner, ledger, say)
            record_matching(ledger, planner.matching)
            results = ledger.results()
            planned = planner.list_runs(score_results(results))
            is_needed = on == "local" and any(run.id not in results for run in planned)
            with start_workers_early(self.plugins, is_needed) as server:
                with stop.announce(NOTICE):
                    planned, plan_more = self._prepare(ledger, planner, say, stop)
                Execution(
                    folder, ledger, planned, say, stop, workers, self.plugins, self._choose_precision(ledger), tick, on,
                    server, plan_more, planner.count_runs() + planner.num_trials if plan_more else 0,
                ).run()  # fmt: skip
            return Conclusion.of(read(folder, ledger))

    def register(self, out: str | Path) -> Declaration:
        """Write what the study declares into its folder, before any verdict is printed."""
        check_named_tuning_data(self.design)
        with self._open_ledger(out) as (_, ledger):
            ledger.note_fact("study", self.design.name)
            return register(ledger, self.design)

    def check_limits(self) -> None:
        """Refuse rows, prompts and sentences that the models of the study have no positions for."""
        check_model_limits(self._make_planner().list_runs(None))

    def check_folder(self, out: str | Path) -> Path:
        """Return the path of the folder to run the study in; refuse one that it cannot run in."""
        folder = expand_path(out).resolve()
        if folder.exists() and not folder.is_dir():
            raise StudyError(f"{out} is a file, and a study needs a folder; give a new or empty one with --out DIR")
        refuse_network(folder / LEDGER)
        refuse_foreign_files(folder, (FILE, LEDGER, "runs"), "study")
        return folder

    @contextmanager
    def _open_ledger(self, out: str | Path) -> Iterator[tuple[Path, Ledger]]:
        folder = self.check_folder(out)
        with lock_folder(folder), closing(Ledger(folder / LEDGER)) as ledger:
            yield folder, ledger

    def _prepare(
        self, ledger: Ledger, planner: Planner, say: Say, stop: StopRequest
    ) -> tuple[list[PlannedRun], PlanMore | None]:
        """Audit the arms and check the data; return the runs to be trained, and what plans more with a search."""
        audits = self._audit_arms(ledger, say, stop)
        leaking = self._find_leaking(ledger, audits, say)
        if leaking and self.design.has_leaking:
            planner = self._make_planner(leaking, planner.matching)
        skipped = () if self.design.has_leaking else tuple(leaking)
        trained = planner.list_runs(score_results(ledger.results()), skipped)
        ids, hashes = [run.id for run in trained], hash_data(self.design, self.sources)
        plan: dict[str, Any] = {"runs": ids, "obstacles": leaking, "data": hashes, "audits": audits}
        if self.design.search is not None:  # what is planned depends on the trials, and they on the design
            first = [run.id for run in planner.list_runs({}, skipped)]
            basis = digest([self.design.model_dump(mode="json"), first])
            plan |= {"runs": [], "num_runs": planner.count_runs(skipped), "basis": basis}
        ledger.add_event_if_new(PLAN, content := json.dumps(plan))
        if left_out := count_left_out(ledger, set(ids)):
            say(f"{describe_left_out(left_out)}; they stay in the ledger")
        if not ledger.results():  # once, before anything is trained
            smoke_test = describe_smoke_test(self.design)
            too_short = [smoke_test] if smoke_test else list_budget_warnings(trained)
            for sentence in (*describe_held_out(self.design, self.sources or {}), *too_short):
                say(sentence)
        sources = locate_sources(self.design, self.sources or {})
        count_overlaps(ledger, self.design, sources, hashes, say, stop)
        if self.design.search is None:
            return trained, None

        def plan_more(scores: Scores) -> list[PlannedRun]:
            runs = planner.list_runs(scores, skipped)
            note_planned(ledger, digest(content), runs)
            return runs

        return plan_more(score_results(ledger.results())), plan_more

    def enter(self, folder: Path, ledger: Ledger, workers: int | None, on: str = "local") -> None:
        """Write the design, versions and command into the ledger, and copy the study file into its folder."""
        plugins = read_plugins(self.plugins)
        ledger.note_fact("study", self.design.name)
        ledger.add_event_if_new("design", json.dumps(self.design.model_dump(mode="json")))
        command = write_command(
            str(self.file or FILE), str(folder), self.budget, self.assign, self.sources, self.plugins,
            self.trackers, threads=self.threads, **({} if workers is None else {"workers": workers}),
        )  # fmt: skip
        if on != "local":
            command += f" --on {on}" + (" --workers 1" if workers == 1 else "")
        ledger.add_event("started", json.dumps({**collect_provenance(), "command": command, "plugins": plugins}))
        if self.file is not None and self.file.is_file():
            content, copy = self.file.read_bytes(), folder / FILE
            if not copy.exists() or copy.read_bytes() != content:
                temporary = folder / f".{FILE}.writing"
                write_through(temporary, [content])
                temporary.replace(copy)

    def _choose_precision(self, ledger: Ledger) -> str | None:
        """Return the precision that `auto` stands for: chosen once, so that all runs have the same."""
        if all(phase.precision != "auto" for phase in self.design.phases):
            return None
        if ledger.fact("precision") is None:
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            ledger.note_fact("precision", choose_precision("auto", device).name)
        return ledger.fact("precision")

    def _audit_arms(self, ledger: Ledger, say: Say, stop: StopRequest) -> dict[str, list[str]]:
        """Audit every arm once, its mechanism alone and installed in every size; return the audits' keys by arm."""
        task, audited = find_audited_task(self.design), dict[str, list[str]]()
        is_causal = is_causal_task(task)
        for name, arm in self.design.arms.items():
            models = [InstalledArm(arm, size_name, size, task) for size_name, size in self.design.sizes.items()]
            installed = {mark_key(model.key, model.line, self.plugins): model for model in models}
            lines = {mark_key(line, line, self.plugins): line for line in list_lines(self.design, name)}
            missing = [key for key in (*lines, *installed) if ledger.audit(key, is_causal) is None]
            if missing:
                say(f"{name}: auditing {', '.join(lines.values())}")
            for key in missing:
                if key not in installed:
                    ledger.add_audit(key, is_causal, *_audit_mechanism(lines[key], is_causal, stop))
                    continue
                try:
                    ledger.add_audit(key, is_causal, *installed[key].audit(is_causal, stop))
                except AttnlabError as error:
                    # If its runs cannot be built either, each fails with this message.
                    say(f"{name}: {key} cannot be audited: {error}")
            audited[name] = [key for key in (*lines, *installed) if ledger.audit(key, is_causal) is not None]
        return audited

    def _find_leaking(self, ledger: Ledger, audits: Mapping[str, Sequence[str]], say: Say) -> dict[str, str]:
        """Return the arms with access to future tokens according to an audit, and report failed audits."""
        leaking, is_causal = [], is_causal_task(find_audited_task(self.design))
        for name, keys in audits.items():
            findings = [finding for key in keys for finding in ledger.audit(key, is_causal) or ()]
            failed = [finding for finding in findings if not finding["passed"]]
            if failed:
                names = dict.fromkeys(str(finding["name"]) for finding in failed)
                say(f"{name}: its audit failed: {', '.join(names)}")
            if any(read_kind(finding) == "leak" for finding in failed):
                leaking.append(name)
        if self.design.baseline in leaking and not self.design.has_leaking:
            raise StudyError(
                f"the baseline '{self.design.baseline}' has access to future tokens, so nothing can be compared with "
                "it; choose another one (has_leaking = true trains it anyway)"
            )
        if leaking and not self.design.has_leaking:
            arms = ", ".join(leaking)
            say(f"not trained, since they have access to future tokens: {arms} (has_leaking = true trains them)")
        return dict.fromkeys(leaking, LEAKS)


def _ignore(message: str) -> None:
    """Show nothing of what a plan counts."""


def _audit_mechanism(line: str, is_causal: bool, stop: StopRequest) -> tuple[bool, list[Mapping[str, Any]]]:
    # Cost depends on the machine and does not matter here.
    known = known_checks("mechanism").values()
    checks = [check.name for check in known if not check.is_slow and check.kind != "cost"]
    result = audit(line, causal=is_causal, checks=checks, progress=lambda _: stop.check())
    return result.passed, [finding.record() for finding in result.findings.values()]
