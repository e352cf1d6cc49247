"""What of a study's held-out examples it also trains on: counted while the data is there, for readers who have it not.

Examples are compared whole, whatever their case and white space, as hashes of 8 bytes: those held out are kept, and
those trained on stream past them. So it costs one reading, and the memory of the held-out set.
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
from attnlab.tasks.reading import Row, find_column, read_rows
from attnlab.tasks.squad import Squad
from attnlab.training.build import split_in
from attnlab.training.spec import Source
from attnlab.training.stopping import StopRequest

from ..file.design import Design
from ..file.overrides import with_settings
from ..ledger.database import Ledger
from .execution import Say
from .overlap_record import KIND, SourceOverlap

DOCUMENT = "document"
BLOCK = 4096
"""Examples that are looked up at a time."""


@dataclass(frozen=True)
class Counting:
    """Counts the overlaps of a study that its ledger does not have yet."""

    ledger: Ledger
    sources: Mapping[str, Source]
    contents: Mapping[str, Mapping[str, str]]
    """The hash of each source's splits."""
    say: Say
    stop: StopRequest

    def note(self, tasks: Iterable[tuple[str, Any]]) -> None:
        """Count for each pair of a source's name and a task that reads it; say what is found."""
        known = {SourceOverlap(**json.loads(said)).question for said in self.ledger.events(KIND)}
        for name, task in tasks:
            source, hashes = self.sources[name], self.contents[name]
            if "dev" not in hashes:
                continue
            kept = hashes["train"], hashes["dev"], source.num_train, source.num_dev, source.column
            asked = SourceOverlap(name, unit_of(task), *kept)
            if asked.question in known:
                continue
            known.add(asked.question)
            try:
                found = self.counted(asked, source, task)
            except AttnlabError as error:
                # A row that no run can read either: each run that reads it says so, and fails alone.
                self.say(f"{name}: what it holds out cannot be looked for in what it trains on: {error}")
                continue
            self.ledger.say(KIND, json.dumps(dataclasses.asdict(found)))
            if found.num_found:
                self.say(f"{name}: {found.sentence}")

    def counted(self, asked: SourceOverlap, source: Source, task: Any) -> SourceOverlap:
        """Read what is held out, then let what is trained on pass by."""
        every = held_out(task, source)
        # Where no document is long, short ones are what the source is made of.
        long = [text for text in every if asked.unit != DOCUMENT or says_something(text)] or every
        wanted = Wanted([np.array([digest_of(text) for text in long], dtype=np.uint64)])
        texts = islice(trained_on(task, source), source.num_train)
        while block := [digest_of(plain(text)) for text in islice(texts, BLOCK)]:
            if self.stop:
                raise KeyboardInterrupt
            wanted.look(np.array(block, dtype=np.uint64))
        return dataclasses.replace(
            asked, num_held_out=len(long), num_found=wanted.num_found, num_short=len(every) - len(long)
        )  # fmt: skip


def tasks_of(study: Design) -> list[tuple[str, Any]]:
    """Return every source that a phase takes, or an arm in it, with the task that reads it."""
    phases = [with_settings(phase, arm) for phase in study.phases for arm in study.arms.values()]
    return [(phase.data, load_task(phase.task, **phase.task_settings)) for phase in phases]


def unit_of(task: Any) -> str:
    """Name what an example of a task is."""
    if isinstance(task, Squad):
        return "question"
    return "text" if isinstance(task, Classification) else "sequence" if isinstance(task, ProbeTask) else DOCUMENT


def plain(text: str) -> str:
    """Return a text without regard to case and white space."""
    return " ".join(text.casefold().split())


def held_out(task: Any, source: Source) -> list[str]:
    """Return the examples that a run is evaluated on, as they are compared."""
    name = source.dev if source.dev is not None else source.train
    split = split_in(name, "dev")
    wanted = name if source.column is None else open_source(name, split=split, column=source.column)
    examples = task.examples(wanted, split)[: source.num_dev]
    return [plain(text_of(one)) for one in examples]


def text_of(example: Any) -> str:
    """Return all that an example shows a model, as one text."""
    if hasattr(example, "input_ids"):
        return sequence_text(example.input_ids, example.labels)
    return "\n".join(filter(None, (example.text, getattr(example, "pair", None), getattr(example, "context", None))))


def sequence_text(tokens: Iterable[int], labels: Iterable[int]) -> str:
    """Return tokens and labels as one text."""
    return f"{' '.join(map(str, tokens))} : {' '.join(map(str, labels))}"


def trained_on(task: Any, source: Source) -> Iterator[str]:
    """Yield the examples that a run trains on, one after another, as `text_of` would give them."""
    split = split_in(source.train, "train")
    if isinstance(task, Classification):
        for place, row in read_rows(task.columns.open(source.train, split)):
            yield from labelled_text(task, row, place)
        return
    opened = open_source(source.train, split=split, column=source.column)
    if isinstance(task, Squad):
        yield from (f"{row['question']}\n{row['context']}" for _, row in read_rows(opened))
    elif isinstance(task, ProbeTask):
        yield from (sequence_text(row["input_ids"], row["labels"]) for _, row in read_rows(opened))
    else:
        yield from opened.documents()


def labelled_text(task: Classification, row: Row, place: str) -> Iterator[str]:
    """Yield the text of a row, with its pair; nothing of a row that is left out by agreement."""
    columns = task.columns
    label = next((name for name in columns.label if name in row), None)
    if label is None or str(row[label]) not in columns.skipped:
        names = [find_column(row, wanted, place) for wanted in (columns.text, columns.pair) if wanted]
        yield "\n".join(str(row[name]) for name in names if row[name])
