"""The held-out examples of a study that it also trains on, counted before training while the data is there.

Whole examples are compared, without regard to case and white space, as hashes of 8 bytes: those of held-out examples
are kept in memory, and training examples are read once.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from attnlab.data import open_source
from attnlab.data.audit.overlap import Wanted, says_something
from attnlab.data.sources.cleaning import digest_of
from attnlab.errors import AttnlabError
from attnlab.tasks import load as load_task
from attnlab.tasks.classification import Classification
from attnlab.tasks.probes import ProbeTask
from attnlab.tasks.squad import Squad
from attnlab.training.job.build import choose_split
from attnlab.training.loop.stopping import StopRequest
from attnlab.training.spec import DataSource

from ..file.design import Design
from ..file.overrides import apply_settings
from ..ledger.database import Ledger
from .execution import Say
from .overlap_record import KIND, SourceOverlap

DOCUMENT = "document"
BLOCK = 4096
"""Training examples that are looked up at a time."""


@dataclass(frozen=True)
class OverlapCounter:
    """Counts the overlaps of a study that its ledger does not have yet."""

    ledger: Ledger
    sources: Mapping[str, DataSource]
    contents: Mapping[str, Mapping[str, str]]
    """The hash of each source's splits."""
    say: Say
    stop: StopRequest

    def count(self, tasks: Iterable[tuple[str, Any]]) -> None:
        """Count for each pair of a source's name and a task that reads it; say what overlaps."""
        known = {SourceOverlap(**json.loads(record)).question for record in self.ledger.events(KIND)}
        for name, task in tasks:
            source, hashes = self.sources[name], self.contents[name]
            if "dev" not in hashes:
                continue
            described = hashes["train"], hashes["dev"], source.num_train, source.num_dev, source.column
            overlap = SourceOverlap(name, _name_unit(task), *described)
            if overlap.question in known:
                continue
            known.add(overlap.question)
            try:
                overlap = self._count_source(overlap, source, task)
            except AttnlabError as error:
                # No run can read the source either: each of them says so and fails.
                self.say(f"{name}: the overlap of its held-out and training examples cannot be counted: {error}")
                continue
            self.ledger.say(KIND, json.dumps(dataclasses.asdict(overlap)))
            if overlap.num_found:
                self.say(f"{name}: {overlap.sentence}")

    def _count_source(self, overlap: SourceOverlap, source: DataSource, task: Any) -> SourceOverlap:
        texts = _read_held_out(task, source)
        # If no document is long, the source consists of short ones.
        long = [text for text in texts if overlap.unit != DOCUMENT or says_something(text)] or texts
        wanted = Wanted([np.array([digest_of(text) for text in long], dtype=np.uint64)])
        trained = islice(_read_trained(task, source), source.num_train)
        while block := [digest_of(_normalize(text)) for text in islice(trained, BLOCK)]:
            if self.stop:
                raise KeyboardInterrupt
            wanted.look(np.array(block, dtype=np.uint64))
        return dataclasses.replace(
            overlap, num_held_out=len(long), num_found=wanted.num_found, num_short=len(texts) - len(long)
        )  # fmt: skip


def list_tasks(study: Design) -> list[tuple[str, Any]]:
    """Return the name of every source that a phase reads, or an arm in it, with the task that reads it."""
    phases = [apply_settings(phase, arm) for phase in study.phases for arm in study.arms.values()]
    return [(phase.data, load_task(phase.task, **phase.task_settings)) for phase in phases]


def _name_unit(task: Any) -> str:
    if isinstance(task, Squad):
        return "question"
    return "text" if isinstance(task, Classification) else "sequence" if isinstance(task, ProbeTask) else DOCUMENT


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


def _read_held_out(task: Any, source: DataSource) -> list[str]:
    """Return the normalized texts of the examples that a run is evaluated on."""
    name = source.dev if source.dev is not None else source.train
    return [_normalize(text) for text in islice(_read_examples(task, source, name, "dev"), source.num_dev)]


def _read_trained(task: Any, source: DataSource) -> Iterator[str]:
    """Yield the texts of the examples that a run trains on; corpora and probes may not fit into memory."""
    if isinstance(task, Classification | Squad):
        return _read_examples(task, source, source.train, "train")
    opened = open_source(source.train, split=choose_split(source.train, "train"), column=source.column)
    if isinstance(task, ProbeTask):
        return (_join_sequence(row["input_ids"], row["labels"]) for row in opened.rows())
    return iter(opened.documents())


def _read_examples(task: Any, source: DataSource, name: str, split: str) -> Iterator[str]:
    """Yield all that each example of a split shows a model, as one text."""
    part = choose_split(name, split)
    opened = name if source.column is None else open_source(name, split=part, column=source.column)
    for example in task.examples(opened, part):
        if hasattr(example, "input_ids"):
            yield _join_sequence(example.input_ids, example.labels)
        else:
            shown = (example.text, getattr(example, "pair", None), getattr(example, "context", None))
            yield "\n".join(filter(None, shown))


def _join_sequence(tokens: Iterable[int], labels: Iterable[int]) -> str:
    return f"{' '.join(map(str, tokens))} : {' '.join(map(str, labels))}"
