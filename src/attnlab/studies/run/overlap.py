"""The held-out examples of a study that it also trains on, counted before training.

Whole examples are compared, without regard to case and white space, as hashes of 8 bytes: those of held-out examples
are kept in memory, and training examples are read once.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from attnlab.data.audit.overlap import HashMatches, is_comparable
from attnlab.data.sources.cleaning import digest_of
from attnlab.errors import AttnlabError
from attnlab.tasks import load as load_task
from attnlab.tasks.classification import Classification
from attnlab.tasks.probes import ProbeTask
from attnlab.tasks.squad import Squad
from attnlab.training.job.build import open_data, read_examples
from attnlab.training.loop.stopping import StopRequest
from attnlab.training.spec import DataSource

from ..file.design import Design
from ..file.overrides import apply_settings
from ..ledger.database import Ledger
from .execution import Say
from .overlap_record import KIND, SourceOverlap, list_overlaps, read_overlaps

DOCUMENT = "document"
BLOCK = 4096
"""Training examples that are looked up at a time."""


def count_overlaps(
    ledger: Ledger, design: Design, sources: Mapping[str, DataSource], hashes: Mapping[str, Mapping[str, str]],
    say: Say, stop: StopRequest,
) -> None:  # fmt: skip
    """Count the overlaps that the ledger does not have yet, for each source and task that reads it; report all.

    Those that the ledger has are reported too, since a study that is resumed may have shown them to nobody. The newest
    record of a source is the one in force, so a count of earlier settings that apply again is added again.

    hashes: of each source's splits.
    """
    recorded = {overlap.question: overlap for overlap in list_overlaps(ledger)}
    in_force = read_overlaps(ledger, hashes)
    seen: set[tuple[Any, ...]] = set()
    phases = [apply_settings(phase, arm) for phase in design.phases for arm in design.arms.values()]
    for name, task in [(phase.data, load_task(phase.task, **phase.task_settings)) for phase in phases]:
        source, splits = sources[name], hashes[name]
        if "dev" not in splits:
            continue
        description = splits["train"], splits["dev"], source.num_train, source.num_dev, source.column
        overlap = SourceOverlap(name, _name_unit(task), *description)
        if overlap.question in seen:
            continue
        seen.add(overlap.question)
        try:
            overlap = recorded.get(overlap.question) or _count_source(overlap, source, task, stop)
        except AttnlabError as error:
            # No run can read the source either, and each fails with this message.
            say(f"{name}: the overlap of its held-out and training examples cannot be counted: {error}")
            continue
        if overlap not in in_force:
            ledger.add_event(KIND, json.dumps(dataclasses.asdict(overlap)))
        if overlap.num_found:
            say(f"{name}: {overlap.sentence}")


def _count_source(overlap: SourceOverlap, source: DataSource, task: Any, stop: StopRequest) -> SourceOverlap:
    held_out = _read_examples(task, source, source.train if source.dev is None else source.dev, "dev")
    texts = [_normalize(text) for text in islice(held_out, source.num_dev)]
    # Headings and lines of a few words recur without being copies, even if a text has no others.
    long = [text for text in texts if overlap.unit != DOCUMENT or is_comparable(text)]
    matches = HashMatches([np.array([digest_of(text) for text in long], dtype=np.uint64)])
    trained = islice(_read_trained(task, source), source.num_train)
    while block := [digest_of(_normalize(text)) for text in islice(trained, BLOCK)]:
        stop.check()
        matches.mark(np.array(block, dtype=np.uint64))
    num_short = len(texts) - len(long)
    return dataclasses.replace(overlap, num_held_out=len(long), num_found=matches.num_found, num_short=num_short)


def _name_unit(task: Any) -> str:
    if isinstance(task, Squad):
        return "question"
    return "text" if isinstance(task, Classification) else "sequence" if isinstance(task, ProbeTask) else DOCUMENT


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


def _read_trained(task: Any, source: DataSource) -> Iterator[str]:
    """Yield the texts of the examples that a run trains on; corpora and probes may not fit into memory."""
    if isinstance(task, Classification | Squad):
        return _read_examples(task, source, source.train, "train")
    opened = open_data(source.train, "train", source)
    if isinstance(task, ProbeTask):
        return (_join_sequence(row["input_ids"], row["labels"]) for row in opened.rows())
    return iter(opened.documents())


def _read_examples(task: Any, source: DataSource, name: str, split: str) -> Iterator[str]:
    """Yield all that each example of a split shows a model, as one text."""
    for example in read_examples(task, name, split, source):
        if hasattr(example, "input_ids"):
            yield _join_sequence(example.input_ids, example.labels)
        else:
            shown = (example.text, getattr(example, "pair", None), getattr(example, "context", None))
            yield "\n".join(filter(None, shown))


def _join_sequence(tokens: Iterable[int], labels: Iterable[int]) -> str:
    return f"{' '.join(map(str, tokens))} : {' '.join(map(str, labels))}"
