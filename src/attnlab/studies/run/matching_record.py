"""What the runs of a study cost, in its ledger: written before the first run, and read when the study is resumed."""

import json
from typing import Any

from pydantic import TypeAdapter

from ..ledger.database import Ledger
from ..plan.matching import Matching, Place, RunCount

MATCHING = "matching"
"""Name of the event."""
_COUNTS: TypeAdapter[list[tuple[Place, RunCount]]] = TypeAdapter(list[tuple[Place, RunCount]])


def record_matching(ledger: Ledger, matching: Matching) -> None:
    """Write a matching, unless it is the last one or empty."""
    if not matching.counts:
        return
    counts = _COUNTS.dump_python([*matching.counts.items()], mode="json")
    content = {**vars(matching), "counts": counts}
    ledger.add_event_if_new(MATCHING, json.dumps(content, sort_keys=True))


def find_matching(ledger: Ledger, basis: str) -> Matching | None:
    """Return the matching of a basis, None if there is none."""
    events = (json.loads(event) for event in reversed(ledger.events(MATCHING)))
    return next((_read(event) for event in events if event["basis"] == basis), None)


def read_matching(ledger: Ledger) -> Matching:
    """Return the matching of the study as it was last started; an empty one if nothing was counted."""
    events = ledger.events(MATCHING)
    return _read(json.loads(events[-1])) if events else Matching()


def _read(event: dict[str, Any]) -> Matching:
    return Matching(**{**event, "counts": dict(_COUNTS.validate_python(event["counts"]))})
