"""The trials of a search in the ledger: their scores, and the runs that were planned so far."""

import json
import math
from collections.abc import Iterable, Mapping

from attnlab.tasks.scores import LOWER_IS_BETTER
from attnlab.training.plain import decode_nonfinite

from ..ledger.database import ENDED, Ledger, ResultRow
from ..plan.planning import PlannedRun
from ..plan.search import WORST

PLANNED = "planned"
"""Name of the event of runs that were planned for a plan with a search."""


def score_result(row: ResultRow) -> float:
    """Return the score of a trial, higher is better; a trial that diverged has the worst."""
    last = row.result.get("last")
    if row.status not in ENDED or not last:
        return WORST
    value = float(decode_nonfinite(last["figures"]).get(last["primary"], math.nan))
    if not math.isfinite(value):
        return WORST
    return -value if last["primary"] in LOWER_IS_BETTER else value


def score_results(results: Mapping[str, ResultRow]) -> dict[str, float]:
    """Return the scores of all results, by the run's id."""
    return {id: score_result(row) for id, row in results.items()}


def note_planned(ledger: Ledger, plan: str, runs: Iterable[PlannedRun]) -> None:
    """Note runs as planned, unless they are. plan: a hash of the plan they belong to."""
    known = set(list_planned_runs(ledger, plan))
    new = [run.id for run in runs if run.id not in known]
    if new:
        ledger.add_event(PLANNED, json.dumps({"plan": plan, "runs": new}))


def list_planned_runs(ledger: Ledger, plan: str) -> list[str]:
    """List the ids of the runs that were planned for a plan, in that order."""
    events = [json.loads(event) for event in ledger.events(PLANNED)]
    return [id for event in events if event["plan"] == plan for id in event["runs"]]
