"""How long a study takes with so many workers: its runs in their order, none before the one that it comes after."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..plan.planning import PlannedRun


def wall_seconds(runs: Sequence[PlannedRun], seconds: Mapping[str, float], workers: int) -> float:
    """Return when the last of these runs ends; a parent that is not among them has ended. seconds: by id."""
    own = {run.id for run in runs}
    behind: dict[str, list[int]] = defaultdict(list)
    ready: list[int] = []
    for number, run in enumerate(runs):
        if run.parent is not None and run.parent in own:
            behind[run.parent].append(number)
        else:
            ready.append(number)
    going: list[tuple[float, int]] = []
    now = 0.0
    while ready or going:
        while ready and len(going) < workers:
            number = heapq.heappop(ready)
            heapq.heappush(going, (now + seconds[runs[number].id], number))
        now, ended = heapq.heappop(going)
        for number in behind[runs[ended].id]:
            heapq.heappush(ready, number)
    return now
