"""The data of a study: the path of each source, the hashes of its splits, how much was read, and what overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.studies.answers.study_folder import Record


@dataclass(frozen=True)
class DataCard:
    """One source: facts by name."""

    name: str
    facts: Sequence[tuple[str, str]]


def make_data_cards(record: Record) -> list[DataCard]:
    """Return a card for every source that a phase takes."""
    return [
        DataCard(name, [*_list_splits(record, name), *_list_counts(record, name), *_list_overlaps(record, name)])
        for name in dict.fromkeys(phase.data for phase in record.design.phases)
    ]


def _list_phases(record: Record, name: str) -> list[str]:
    """List the phases that take a source."""
    return [phase.name for phase in record.design.phases if phase.data == name]


def _list_splits(record: Record, name: str) -> list[tuple[str, str]]:
    """Say where the splits of a source are, and what they hold."""
    phases = _list_phases(record, name)
    data = next((run.run.data for run in record.runs if run.phase in phases), None)
    hashes = record.data.get(name, {})
    facts = [("taken by", ", ".join(phases))]
    for split in ("train", "dev"):
        place = None if data is None else getattr(data, split)
        if place is not None or split in hashes:
            facts.append((split, place or "held out of the training source"))
        if split in hashes:
            facts.append((f"{split}, SHA-256", hashes[split]))
    return facts


def _list_counts(record: Record, name: str) -> list[tuple[str, str]]:
    """Say how much of a source is read, and how much was evaluated on."""
    facts = []
    for phase in record.design.phases:
        runs = [run for run in record.runs if run.phase == phase.name and run.id in record.results]
        if phase.data != name or not runs:
            continue
        own = runs[0].run.data
        limits = [
            f"{what}: at most {number:,}" for what, number in (("train", own.num_train), ("dev", own.num_dev)) if number
        ]
        tokens = record.results[runs[0].id].result.get("tokens")
        said = [*limits, *([f"{tokens:,} tokens trained on by a run"] if tokens else [])]
        if (num := _count_evaluated(record, runs[0].id)) is not None:
            said.append(f"{num:,} examples evaluated on")
        if said:
            facts.append((f"numbers, {phase.name}", "; ".join(said)))
    return facts


def _count_evaluated(record: Record, run: str) -> int | None:
    """Return how many examples a run was evaluated on, where it has a score for each."""
    ids, _ = record.ledger.examples(run)
    return len(ids) or None


def _list_overlaps(record: Record, name: str) -> list[tuple[str, str]]:
    """Say how much of what is held out was trained on."""
    counted = [(f"overlap, {one.unit}s", one.sentence) for one in record.overlaps if one.source == name]
    return counted or [("overlap", "was not counted")]
