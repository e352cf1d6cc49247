"""The study that a run belongs to, and its verdict on the run's arm."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """Whether every run of the study has ended or was given up; there is no answer before."""
    answer: Answer | None
    data: Mapping[str, Mapping[str, str]]
    """The hashes of the splits that the run's phase takes, by source."""

    @property
    def title(self) -> str:
        """A name for the run's model."""
        return f"{self.run.arm} of the study {self.study}"

    @property
    def sentence(self) -> str:
        """The result of the study for the run's arm, in words."""
        run, question = self.run, f" ({escape(self.question, quote=False)})" if self.question else ""
        place = f"Arm `{run.arm}`, phase `{run.phase}`, size `{run.size}`, seed {run.seed} of the study `{self.study}`"
        if not self.is_whole:
            return f"{place}{question}. Not all of its runs have ended, so there is no verdict yet."
        if run.arm == self.baseline:
            return f"{place}{question}. This arm is the baseline that others are compared with."
        if self.answer is None:
            return f"{place}{question}. This phase is not compared."
        text = f"{place}{question}; against `{self.baseline}`, by {self.answer.figure}: **{self.answer.verdict}**"
        if (comparison := self.answer.comparison) is not None:
            scale = comparison.question.scale
            text += f", difference {format_difference(comparison.difference, comparison.interval, scale)}"
        notes = [f"- {note}" for note in self.answer.notes]
        return "\n".join([f"{text}.", *([""] if notes else []), *notes])


def find_study_context(folder: Path) -> StudyContext | None:
    """Return the context of the run in a folder, None if it is not part of a study."""
    with _open_study(folder) as (record, run):
        if record is None or run is None:
            return None
        design = record.design
        place = (run.arm, run.phase, run.size)
        answer = next((other for other in record.answers if (other.arm, other.phase, other.size) == place), None)
        phase = next(phase for phase in design.phases if phase.name == run.phase)
        source = apply_settings(phase, design.arms[run.arm]).data
        hashes = {source: record.data[source]} if source in record.data else {}
        return StudyContext(run, design.name, design.question, design.baseline, record.is_whole, answer, hashes)


def find_plugin_hashes(folder: Path) -> list[str]:
    """Return the hashes of the plugin files that the study of a run was last started with, if it has one."""
    with _open_study(folder) as (record, run):
        # A run's id depends on the content of these files: if it is among the newest runs, it was trained with them.
        if record is None or run is None:
            return []
        return [plugin["sha256"] for start in record.starts[-1:] for plugin in start.get("plugins", ())]


@contextmanager
def _open_study(folder: Path) -> Iterator[tuple[Record | None, PlannedRun | None]]:
    home, id = folder.resolve().parent.parent, folder.resolve().name
    if not (home / LEDGER).is_file():
        yield None, None
        return
    with open_record(home) as record:
        yield record, next((run for run in record.runs if run.id == id), None)
