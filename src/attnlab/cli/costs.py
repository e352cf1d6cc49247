"""The runs of a study and their cost, as `attnlab run --dry-run` prints them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attnlab.cli.tables import print_below, print_table

if TYPE_CHECKING:
    from attnlab.studies.cost.estimate import CostEstimate, RunCost
    from attnlab.studies.plan.planning import PlannedRun

RUNS = ("run", "phase", "size", "arm", "seed", "task", "")
COSTS = (
    "phase", "size", "arm", "runs left", "parameters", "trained", "updates", "tokens", "operations/update", "memory",
    "disk/run", "an update", "an evaluation", "a run",
)  # fmt: skip


def print_estimate(estimate: "CostEstimate", runs: Sequence["PlannedRun"]) -> None:
    """Print the runs of a study, their cost by phase, size and arm, and the total."""
    rows = [
        (
            run.id, run.phase, run.size, run.arm, str(run.seed), run.run.task,
            "ended" if run.id in estimate.ended else "" if run.trial is None else f"trial, {run.trial.title}",
        )
        for run in runs
    ]  # fmt: skip
    print_table(RUNS, rows)
    print()
    print_table(COSTS, [_make_row(cost) for cost in estimate.costs])
    print()
    for line in _list_totals(estimate, sum(run.is_trial for run in runs)):
        print(line)
    for note in estimate.notes:
        print_below(note)


def _make_row(cost: "RunCost") -> tuple[str, ...]:
    from attnlab.kernels.cost import show_with_prefix
    from attnlab.kernels.measure import show_bytes, show_seconds
    from attnlab.training.loop.progress import format_duration

    left = f"{cost.num_left} of {cost.num_runs}"
    if cost.workload is None:
        return (cost.phase, cost.size, cost.arm, left, *["–"] * (len(COSTS) - 4))
    work, times = cost.workload, ["–"] * 3
    if cost.timing is not None and cost.seconds is not None:
        evaluation = show_seconds(cost.timing.evaluation) if work.num_evaluations else "none"
        times = [show_seconds(cost.timing.average_updates(work)), evaluation, format_duration(cost.seconds)]
    return (
        cost.phase, cost.size, cost.arm, left, f"{work.num_parameters:,}", f"{work.num_trained:,}",
        f"{work.num_steps:,}", f"{work.num_tokens:,.0f}", show_with_prefix(work.operations / work.num_steps).strip(),
        show_bytes(cost.memory), show_bytes(work.kept_bytes), *times,
    )  # fmt: skip


def _list_totals(estimate: "CostEstimate", num_trials: int) -> Iterator[str]:
    from attnlab.kernels.cost import show_with_prefix
    from attnlab.kernels.measure import show_bytes
    from attnlab.training.loop.progress import format_duration

    ended = f", of which {len(estimate.ended)} have ended" if estimate.ended else ""
    trials = f", {num_trials} of them trials" if num_trials else ""
    yield f"{estimate.num_runs} runs{trials}{ended}"
    if not estimate.num_left:
        yield "no runs are left"
        return
    workers = "1 worker" if estimate.workers == 1 else f"{estimate.workers} workers"
    yield (
        f"{show_with_prefix(estimate.operations).strip()} operations of updates; {show_bytes(estimate.memory)} "
        f"of memory with {workers}; {show_bytes(estimate.kept_bytes)} of checkpoints on the disk"
    )
    if estimate.seconds is not None:
        yield f"about {format_duration(estimate.seconds)} on this machine with {workers} ({estimate.method})"
