"""What was counted is read from the ledger again, of the study as it was last started."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from attnlab.studies.ledger.database import Ledger
from attnlab.studies.plan.matching import Matching, RunCount
from attnlab.studies.run.matching_record import MATCHING, find_matching, read_matching, record_matching


def make(steps: int, basis: str) -> Matching:
    count = RunCount((steps,), (1.5,), 10, 4, (0.1,), {"n_inner": 3})
    return Matching("seconds", {("text", "tiny", "dot"): count}, "a processor", basis)


def test_a_matching_is_kept_by_its_basis(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite")) as ledger:
        assert read_matching(ledger) == Matching()
        record_matching(ledger, Matching())
        first, second = make(3, "a"), make(4, "b")
        for matching in (first, first, second):
            record_matching(ledger, matching)
        assert len(ledger.events(MATCHING)) == 2
        assert (read_matching(ledger), find_matching(ledger, "a"), find_matching(ledger, "c")) == (second, first, None)
        record_matching(ledger, first)
        assert read_matching(ledger) == first
