"""All that a report shows, read from a record and in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.studies.installed import lines_of
from attnlab.studies.integrity import Finding
from attnlab.studies.record import Record

from .datacard import Card, cards_of
from .figures import CURVES, FOREST, SEEDS, TRACES, Figure, figures_of
from .headline import Headline, headline_of
from .history import History
from .limits import limits_of
from .origin import Origin, origin_of
from .results import Place, arms_of, places_of
from .samples import SampleTable, SentenceTable, samples_of, sentences_of
from .soundness import Audited, LeakMap, audits_of, leak_maps
from .traces import TraceTable, traces_of
from .trainingset import TrainingTable, training_of


@dataclass(frozen=True)
class Contents:
    """What a report shows."""

    name: str
    headline: Headline
    figures: Sequence[Figure]
    places: Sequence[Place]
    training: Sequence[TrainingTable]
    audits: Sequence[Audited]
    leaks: Sequence[LeakMap]
    traces: Sequence[TraceTable]
    samples: Sequence[SampleTable]
    sentences: Sequence[SentenceTable]
    cards: Sequence[Card]
    origin: Origin
    findings: Sequence[Finding]
    limits: Sequence[str]
    lines: dict[str, list[tuple[str, str]]]
    """The mechanism of each arm, and the sizes that have it where they differ."""

    @property
    def effects(self) -> list[Figure]:
        """The charts of differences and of seeds."""
        return self.of_kind(FOREST, SEEDS)

    @property
    def curves(self) -> list[Figure]:
        """The learning curves."""
        return self.of_kind(CURVES)

    @property
    def traced(self) -> list[Figure]:
        """The charts of what went on inside."""
        return self.of_kind(TRACES)

    @property
    def all_figures(self) -> list[Figure]:
        """Every chart, those of leaks included."""
        return [*self.figures, *(leak.figure for leak in self.leaks if leak.figure is not None)]

    def of_kind(self, *kinds: str) -> list[Figure]:
        """Return the charts of some kinds."""
        return [figure for figure in self.figures if figure.kind in kinds]


def contents_of(record: Record) -> Contents:
    """Read all that a report shows."""
    places = places_of(record)
    histories = [History(record, place) for place in places]
    samples = [samples_of(history) for history in histories]
    sentences = [sentences_of(history) for history in histories]
    return Contents(
        name=record.design.name,
        headline=headline_of(record, places),
        figures=figures_of(histories),
        places=places,
        training=[table for history in histories if (table := training_of(history)) is not None],
        audits=audits_of(record),
        leaks=leak_maps(record),
        traces=[table for history in histories for table in traces_of(history)],
        samples=[table for table in samples if table is not None],
        sentences=[table for table in sentences if table is not None],
        cards=cards_of(record),
        origin=origin_of(record),
        findings=sorted(record.findings, key=lambda finding: not finding.is_fault),
        limits=limits_of(record, places),
        lines={arm: mechanisms_of(record, arm) for arm in arms_of(record)},
    )


def mechanisms_of(record: Record, arm: str) -> list[tuple[str, str]]:
    """Return the lines of an arm; several where models of different sizes have different ones."""
    own, lines = record.design.arms[arm], lines_of(record.design, arm)
    sizes = {line: ", ".join(size for size in record.design.sizes if own.line(size) == line) for line in lines}
    return [(line, sizes[line] if len(lines) > 1 else "") for line in lines]
