"""The overlap that a ledger keeps: its share in words, and only that of the data as it is now."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from attnlab.studies.ledger.database import Ledger
from attnlab.studies.run.overlap_record import KIND, SourceOverlap, read_overlaps


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def test_the_counts_are_a_sentence() -> None:
    overlap = SourceOverlap("text", "document", "t", "d", None, None, None, 12, 3, 1)
    assert overlap.share == 0.25
    assert overlap.sentence == (
        "3 of 12 documents that 'text' holds out (not counting 1 headings or texts of fewer than 5 words) are also "
        "among those it trains on (25.00%), ignoring case and white space"
    )
    assert SourceOverlap("text", "document", "t", "d", None, None).share == 0.0


def test_the_newest_overlap_of_the_current_data_is_read(ledger: Ledger) -> None:
    for train, num_found in (("t", 1), ("older", 2), ("t", 3)):
        overlap = SourceOverlap("text", "document", train, "d", None, None, None, 12, num_found)
        ledger.add_event(KIND, json.dumps(asdict(overlap)))
    (newest,) = read_overlaps(ledger, {"text": {"train": "t", "dev": "d"}})
    assert newest.num_found == 3
    assert read_overlaps(ledger, {"text": {"train": "newer", "dev": "d"}}) == []
    assert read_overlaps(ledger, {}) == []
