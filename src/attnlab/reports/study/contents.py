"""Everything a report shows, collected from a record in the order of the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.studies.answers.study_folder import Record
from attnlab.studies.answers.target import TargetAnswer
from attnlab.studies.integrity import IntegrityFinding, IntegrityKind
from attnlab.studies.plan.audit_keys import list_lines

from .attention import AttentionSection, make_attention_section
from .datacard import Facts, make_data_cards
from .figures import COSTS, CURVES, FOREST, SEARCH, SEEDS, TRACES, TREND, Figure, list_figures
from .headline import Headline, make_headline
from .history import History
from .joint import list_trend_figures
from .limits import list_limits
from .origin import StudyOrigin, describe_origin
from .results import PhaseResults, collect_results, list_arms
from .samples import ArmTable, make_sample_table, make_sentence_table
from .soundness import ArmAudit, LeakMap, list_audits, list_leak_maps
from .traces import make_trace_tables
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
    attention: AttentionSection | None
    traces: Sequence[ArmTable]
    samples: Sequence[ArmTable]
    sentences: Sequence[ArmTable]
    cards: Sequence[tuple[str, Facts]]
    origin: StudyOrigin
    findings: Sequence[IntegrityFinding]
    limits: Sequence[str]
    lines: dict[str, list[tuple[str, str]]]
    """The lines of each arm, each with the sizes that have it if they differ."""
    targets: Sequence[TargetAnswer] = ()

    @property
    def faulty_audits(self) -> list[ArmAudit]:
        """The audits that found something, or are missing."""
        return [audit for audit in self.audits if not audit.is_sound]

    @property
    def sound_audits(self) -> list[ArmAudit]:
        """The audits that found nothing."""
        return [audit for audit in self.audits if audit.is_sound]

    @property
    def sound_arms(self) -> str:
        """The arms of which every audit found nothing, and those of which only some did."""
        faulty = {audit.arm for audit in self.faulty_audits}
        arms = list(dict.fromkeys(audit.arm for audit in self.sound_audits))
        whole, partly = ([arm for arm in arms if (arm in faulty) == is_faulty] for is_faulty in (False, True))
        return "; ".join(
            [*([", ".join(whole)] if whole else []), *([f"in part {', '.join(partly)}"] if partly else [])]
        )

    @property
    def faults(self) -> list[IntegrityFinding]:
        """The faults that are shown above the verdicts; an arm that leaks has a verdict of its own."""
        return [finding for finding in self.findings if finding.is_fault and finding.kind != IntegrityKind.LEAK]

    @property
    def effects(self) -> list[Figure]:
        """The charts of trends, differences and seeds."""
        return [figure for figure in self.figures if figure.kind in (TREND, FOREST, SEEDS, SEARCH)]

    @property
    def costs(self) -> list[Figure]:
        """The charts of quality against cost."""
        return [figure for figure in self.figures if figure.kind == COSTS]

    @property
    def curves(self) -> list[Figure]:
        """The learning curves."""
        return [figure for figure in self.figures if figure.kind == CURVES]

    @property
    def traced(self) -> list[Figure]:
        """The charts of traces."""
        return [figure for figure in self.figures if figure.kind == TRACES]

    @property
    def all_figures(self) -> list[Figure]:
        """Every chart, including those of leaks and of attention."""
        leaks = [leak.figure for leak in self.leaks if leak.figure is not None]
        return [*self.figures, *leaks, *(self.attention.figures if self.attention else ())]


def collect_contents(record: Record) -> Contents:
    """Collect everything a report shows."""
    places = collect_results(record)
    histories = [History(record, place) for place in places]
    return Contents(
        name=record.design.name,
        headline=make_headline(record, places),
        figures=[*list_trend_figures(record), *list_figures(histories)],
        places=places,
        training=list(filter(None, map(make_training_table, histories))),
        audits=list_audits(record),
        leaks=list_leak_maps(record),
        attention=make_attention_section(record),
        traces=[table for history in histories for table in make_trace_tables(history)],
        samples=list(filter(None, map(make_sample_table, histories))),
        sentences=list(filter(None, map(make_sentence_table, histories))),
        cards=make_data_cards(record),
        origin=describe_origin(record),
        findings=sorted(record.findings, key=lambda finding: not finding.is_fault),
        limits=list_limits(record, places),
        lines={arm: _list_mechanisms(record, arm) for arm in list_arms(record)},
        targets=record.targets,
    )


def _list_mechanisms(record: Record, arm: str) -> list[tuple[str, str]]:
    design, lines = record.design, list_lines(record.design, arm)
    if len(lines) == 1:
        return [(lines[0], "")]
    return [(line, ", ".join(size for size in design.sizes if design.arms[arm].line(size) == line)) for line in lines]
