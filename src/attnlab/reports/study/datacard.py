"""The data of a study: path and hashes of each source, how much was read, and the overlap of its splits."""

from attnlab.studies.answers.study_folder import Record

Facts = list[tuple[str, str]]


def make_data_cards(record: Record) -> list[tuple[str, Facts]]:
    """Return the name and the facts of every source that a phase reads."""
    return [
        (name, [*_list_splits(record, name), *_list_counts(record, name), *_list_overlaps(record, name)])
        for name in dict.fromkeys(phase.data for phase in record.design.phases)
    ]


def _list_splits(record: Record, name: str) -> Facts:
    phases = [phase.name for phase in record.design.phases if phase.data == name]
    data = next((run.run.data for run in record.runs if run.phase in phases), None)
    hashes = record.data.get(name, {})
    facts = [("read by", ", ".join(phases))]
    for split in ("train", "dev"):
        path = None if data is None else getattr(data, split)
        if path is not None or split in hashes:
            facts.append((split, path or "held out from the training source"))
        if split in hashes:
            facts.append((f"{split}, SHA-256", hashes[split]))
    return facts


def _list_counts(record: Record, name: str) -> Facts:
    facts = []
    for phase in record.design.phases:
        runs = [run for run in record.runs if run.phase == phase.name and run.id in record.results]
        if phase.data != name or not runs:
            continue
        first = runs[0]
        sizes = {"train": first.run.data.num_train, "dev": first.run.data.num_dev}
        counts = [f"{split}: at most {number:,}" for split, number in sizes.items() if number]
        if tokens := record.results[first.id].result.get("tokens"):
            counts.append(f"{tokens:,} training tokens per run")
        if ids := record.ledger.examples(first.id)[0]:
            counts.append(f"{len(ids):,} evaluation examples")
        if counts:
            facts.append((f"numbers, {phase.name}", "; ".join(counts)))
    return facts


def _list_overlaps(record: Record, name: str) -> Facts:
    overlaps = [(f"overlap, {item.unit}s", item.sentence) for item in record.overlaps if item.source == name]
    return overlaps or [("overlap", "was not counted")]
