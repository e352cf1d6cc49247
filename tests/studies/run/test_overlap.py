"""Held-out examples that are also trained on are counted once for each source and task, before training."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.ledger.database import Ledger
from attnlab.studies.plan.planning import hash_data, locate_sources
from attnlab.studies.run.overlap import count_overlaps
from attnlab.studies.run.overlap_record import SourceOverlap, read_overlaps
from attnlab.studies.study import Study
from attnlab.training.loop.stopping import StopRequest

from ..samples import content

LINES = [f"the {word} stands on the old table here" for word in ("cup", "pen", "book", "map", "hat")]
Count = Callable[..., list[SourceOverlap]]


def text_study(folder: Path, held_out: list[str], **source: Any) -> Study:
    """Return a study of text that trains on LINES."""
    for name, lines in (("train", LINES), ("dev", held_out)):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plain = content(phases__recall__task="clm", sizes__tiny__tokenizer="word:50")
    plain["phases"][0] |= {"task_settings": {"max_len": 8}, "data": "text"}
    plain["data"] = {"text": {"train": str(folder / "train.txt"), "dev": str(folder / "dev.txt"), **source}}
    return Study.of(plain)


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def count(tmp_path: Path, messages: list[str]) -> Iterator[Count]:
    """Count the overlaps of a study, and return those in its ledger."""
    ledger, stop = Ledger(tmp_path / "ledger.sqlite"), StopRequest()

    def run(study: Study, signal: int | None = None) -> list[SourceOverlap]:
        stop.signal = signal
        hashes = hash_data(study.design)
        count_overlaps(ledger, study.design, locate_sources(study.design, {}), hashes, messages.append, stop)
        return read_overlaps(ledger, hashes)

    yield run
    ledger.close()


def test_case_and_white_space_do_not_hide_an_overlap(count: Count, messages: list[str], tmp_path: Path) -> None:
    held_out = [LINES[0].upper(), LINES[1].replace(" ", "  "), "a line that nobody trains on at all"]
    study = text_study(tmp_path, held_out)
    (overlap,) = count(study)
    assert (overlap.unit, overlap.num_held_out, overlap.num_found) == ("document", 3, 2)
    assert len(messages) == 1
    assert messages[0].startswith("text: 2 of 3 documents that 'text' holds out are also")
    assert count(study) == [overlap]
    assert len(messages) == 1


def test_only_the_examples_that_are_used_count(count: Count, messages: list[str], tmp_path: Path) -> None:
    (overlap,) = count(text_study(tmp_path, LINES[:3], num_train=1, num_dev=2))
    assert (overlap.num_held_out, overlap.num_found) == (2, 1)


def test_probes_are_compared_by_tokens_and_labels(count: Count, messages: list[str]) -> None:
    plain = content()
    plain["data"]["recall"]["dev"] = plain["data"]["recall"]["train"]
    (overlap,) = count(Study.of(plain))
    assert (overlap.unit, overlap.num_held_out, overlap.num_found) == ("sequence", 80, 0)


def test_a_request_to_stop_is_noticed(count: Count, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        count(text_study(tmp_path, LINES[:1]), signal=2)


def test_headings_and_lines_of_a_few_words_do_not_count(count: Count, messages: list[str], tmp_path: Path) -> None:
    study = text_study(tmp_path, ["yes", "= The cup on the old table ="])
    (tmp_path / "train.txt").write_text("yes\n= The cup on the old table =\n", encoding="utf-8")
    (overlap,) = count(study)
    assert (overlap.num_held_out, overlap.num_found, overlap.num_short, overlap.share) == (0, 0, 2, 0.0)
    assert messages == []
