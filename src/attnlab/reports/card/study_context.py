"""The study that a run belongs to, and its verdict on the run's arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from attnlab.reports.differences import format_difference
from attnlab.studies.answers.analysis import Answer
from attnlab.studies.answers.study_folder import LEDGER, Record, open_record
from attnlab.studies.file.overrides import apply_settings
from attnlab.studies.plan.planning import PlannedRun


@dataclass(frozen=True)
class StudyContext:
    """A run as part of a study."""

    run: PlannedRun
    study: str
    question: str
    baseline: str
    is_whole: bool
    """Whether no run of the study is left to wait for; there is no answer before."""
    answer: Answer | None
    data: Mapping[str, Mapping[str, str]]
    """The hashes of the splits that the run's phase takes, by source."""

    @property
    def title(self) -> str:
        """What a person calls the run's model."""
        return f"{self.run.arm} of the study {self.study}"

    @property
    def sentence(self) -> str:
        """What the study says of the run's arm."""
        run, question = self.run, f" ({escape(self.question, quote=False)})" if self.question else ""
        where = f"Arm `{run.arm}`, phase `{run.phase}`, size `{run.size}`, seed {run.seed} of the study `{self.study}`"
        if not self.is_whole:
            return f"{where}{question}. Not all of its runs have ended, so there is no verdict yet."
        if run.arm == self.baseline:
            return f"{where}{question}. This arm is the baseline that others are compared with."
        if self.answer is None:
            return f"{where}{question}. This phase is not compared."
        said = f"{where}{question}; against `{self.baseline}`, by {self.answer.figure}: **{self.answer.verdict}**"
        if self.answer.comparison is not None:
            one = self.answer.comparison
            said += f", difference {format_difference(one.difference, one.interval, one.question.scale)}"
        return "\n".join([f"{said}.", *([""] if self.answer.notes else []), *(f"- {one}" for one in self.answer.notes)])


def find_study_context(folder: Path) -> StudyContext | None:
    """Return what study a run's folder is of; None where it is of none."""
    home, id = folder.resolve().parent.parent, folder.resolve().name
    if not (home / LEDGER).is_file():
        return None
    with open_record(home) as record:
        run = next((one for one in record.runs if one.id == id), None)
        if run is None:
            return None
        own = [one for one in record.answers if (one.arm, one.phase, one.size) == (run.arm, run.phase, run.size)]
        design, answer = record.design, own[0] if own else None
        return StudyContext(
            run, design.name, design.question, design.baseline, record.is_whole, answer, _find_data_hashes(record, run)
        )  # fmt: skip


def _find_data_hashes(record: Record, run: PlannedRun) -> dict[str, Mapping[str, str]]:
    """Return the hashes of what a run's own stage takes, in its arm."""
    phase = next(phase for phase in record.design.phases if phase.name == run.phase)
    name = apply_settings(phase, record.design.arms[run.arm]).data
    return {name: record.data[name]} if name in record.data else {}


def find_plugin_hashes(folder: Path) -> list[str]:
    """Return the hashes of the files of stages that a run's study trained it with, where that says so."""
    home, id = folder.resolve().parent.parent, folder.resolve().name
    if not (home / LEDGER).is_file():
        return []
    with open_record(home) as record:
        # A run's id has the content of these files in it: one of the last start's was trained with the last ones.
        if all(run.id != id for run in record.runs):
            return []
        return [one["sha256"] for start in record.starts[-1:] for one in start.get("plugins", ())]
