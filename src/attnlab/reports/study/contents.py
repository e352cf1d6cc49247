"""Everything a report shows, collected from a record in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.studies.answers.study_folder import Record
from attnlab.studies.integrity import IntegrityFinding
from attnlab.studies.plan.audit_keys import list_lines

from .datacard import DataCard, make_data_cards
from .figures import CURVES, FOREST, SEEDS, TRACES, Figure, list_figures
from .headline import Headline, make_headline
from .history import History
from .limits import list_limits
from .origin import StudyOrigin, describe_origin
from .results import PhaseResults, collect_results, list_arms
from .samples import SampleTable, SentenceTable, make_sample_table, make_sentence_table
from .soundness import ArmAudit, LeakMap, list_audits, list_leak_maps
from .traces import TraceTable, make_trace_tables
from .trainingset import TrainingTable, make_training_table


@dataclass(frozen=True)
class Contents:
    """What a report shows."""

    name: str
    headline: Headline
    figures: Sequence[Figure]
    places: Sequence[PhaseResults]
    training: Sequence[TrainingTable]
    audits: Sequence[ArmAudit]
    leaks: Sequence[LeakMap]
    traces: Sequence[TraceTable]
    samples: Sequence[SampleTable]
    sentences: Sequence[SentenceTable]
    cards: Sequence[DataCard]
    origin: StudyOrigin
    findings: Sequence[IntegrityFinding]
    limits: Sequence[str]
    lines: dict[str, list[tuple[str, str]]]
    """The mechanism of each arm, and the sizes that have it where they differ."""

    @property
    def effects(self) -> list[Figure]:
        """The charts of differences and of seeds."""
        return self.select_figures(FOREST, SEEDS)

    @property
    def curves(self) -> list[Figure]:
        """The learning curves."""
        return self.select_figures(CURVES)

    @property
    def traced(self) -> list[Figure]:
        """The charts of traces."""
        return self.select_figures(TRACES)

    @property
    def all_figures(self) -> list[Figure]:
        """Every chart, those of leaks included."""
        return [*self.figures, *(leak.figure for leak in self.leaks if leak.figure is not None)]

    def select_figures(self, *kinds: str) -> list[Figure]:
        """Return the charts of some kinds."""
        return [figure for figure in self.figures if figure.kind in kinds]


def collect_contents(record: Record) -> Contents:
    """Collect everything a report shows."""
    places = collect_results(record)
    histories = [History(record, place) for place in places]
    samples = [make_sample_table(history) for history in histories]
    sentences = [make_sentence_table(history) for history in histories]
    return Contents(
        name=record.design.name,
        headline=make_headline(record, places),
        figures=list_figures(histories),
        places=places,
        training=[table for history in histories if (table := make_training_table(history)) is not None],
        audits=list_audits(record),
        leaks=list_leak_maps(record),
        traces=[table for history in histories for table in make_trace_tables(history)],
        samples=[table for table in samples if table is not None],
        sentences=[table for table in sentences if table is not None],
        cards=make_data_cards(record),
        origin=describe_origin(record),
        findings=sorted(record.findings, key=lambda finding: not finding.is_fault),
        limits=list_limits(record, places),
        lines={arm: _list_mechanisms(record, arm) for arm in list_arms(record)},
    )


def _list_mechanisms(record: Record, arm: str) -> list[tuple[str, str]]:
    """Return the lines of an arm; several where models of different sizes have different ones."""
    own, lines = record.design.arms[arm], list_lines(record.design, arm)
    sizes = {line: ", ".join(size for size in record.design.sizes if own.line(size) == line) for line in lines}
    return [(line, sizes[line] if len(lines) > 1 else "") for line in lines]
