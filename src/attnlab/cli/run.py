"""`attnlab run`: a study, or on with one that was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli import plugin as plugins
from attnlab.cli.assignments import parted, plain
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.studies.study import Conclusion, Study

INTERRUPTED = 130


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A study file, in TOML.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study.")] = "",
    budget: Annotated[str | None, typer.Option(help="smoke, laptop, paper: a section of the file.")] = None,
    workers: Annotated[int, typer.Option(help="Runs at a time, each in a process of its own.")] = 1,
    threads: Annotated[int, typer.Option(help="Threads of a run.")] = 1,
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PATH", help="Where data is that the study names; repeat it.")
    ] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="A setting by its path; repeat it.")
    ] = None,
    plugin: Annotated[list[str] | None, typer.Option(metavar="FILE.py", help="Stages of your own; repeat it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run, and run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answers for programs to read.")] = False,
) -> int:
    """Run a study and say what its evidence carries; the same command goes on where it stopped."""
    for own in plugin or []:
        plugins.load(own)
    # Imported here because the command line must answer --help without torch.
    from attnlab.studies.study import Study

    settings = {name: plain(value) for name, value in parted(assign or [], "--set").items()}
    study = Study.load(file, budget, assign=settings, data=parted(data or [], "--data"), threads=threads)
    if dry_run:
        print_plan(study)
        return 0
    if not out:
        raise RequestError("--out DIR is missing: the folder that the study keeps its ledger and runs in")
    say = print if not as_json else str
    conclusion = study.run(Path(out).expanduser(), workers, say)  # type: ignore[arg-type]
    if as_json:
        print_json({
            "runs": conclusion.num_runs, "ended": conclusion.num_ended, "failed": dict(conclusion.failed),
            "answers": [{**vars(one), "comparison": one.comparison.record()} for one in conclusion.answers],
        })  # fmt: skip
    else:
        print_conclusion(conclusion, out)
    if conclusion.failed:
        return 1
    return 0 if conclusion.is_whole else INTERRUPTED


def print_plan(study: Study) -> None:
    """Print the runs of a study."""
    runs = study.plan()
    rows = [(run.id, run.stage, run.size, run.arm, str(run.seed), run.run.task) for run in runs]
    print_table(("run", "stage", "size", "arm", "seed", "task"), rows)
    print(f"{len(runs)} runs")


def print_conclusion(conclusion: Conclusion, out: str) -> None:
    """Print a verdict for every arm, and what stands beside it."""
    rows = []
    for answer in conclusion.answers:
        found = answer.comparison
        low, high = found.interval
        span = f"{found.difference:+.4g} [{low:+.4g}, {high:+.4g}]"
        rows.append((answer.stage, answer.size, answer.arm, answer.figure, span, answer.verdict, str(found.stability)))
    if rows:
        print_table(("stage", "size", "arm", "figure", "difference", "verdict", "stability"), rows)
    for title, reason in conclusion.failed.items():
        print(f"failed: {title}: {reason}")
    print(f"{conclusion.num_ended} of {conclusion.num_runs} runs have ended; the ledger is {out}/ledger.sqlite")
    if not conclusion.is_whole:
        print("the same command goes on")
