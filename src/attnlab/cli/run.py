"""`attnlab run`: a study, or on with one that was stopped."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli import plugin as plugins
from attnlab.cli.assignments import NONE, parted
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

    settings = {name: value_of(text) for name, text in parted(assign or [], "--set").items()}
    places = parted(data or [], "--data")
    study = Study.load(file, budget, assign=settings, data=places, threads=threads, plugins=tuple(plugin or ()))
    if dry_run:
        print_plan(study)
        return 0
    if not out:
        raise RequestError("--out DIR is missing: the folder that the study keeps its ledger and runs in")
    conclusion = study.run(out, workers, ignore if as_json else tell)
    if as_json:
        print_json({
            "runs": conclusion.num_runs, "ended": conclusion.num_ended, "failed": dict(conclusion.failed),
            "answers": [one.record() for one in conclusion.answers],
        })  # fmt: skip
    else:
        print_conclusion(conclusion, out)
    if not conclusion.is_whole:
        return INTERRUPTED
    return 1 if conclusion.failed else 0


def value_of(text: str) -> Any:
    """Read a value as a study file has it; `none` is nothing, and what is no TOML is a text."""
    if text.lower() in NONE:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def tell(message: str) -> None:
    """Print a message at once, also where a pipe would keep it back."""
    print(message, flush=True)


def ignore(message: str) -> None:
    """Leave a message out where programs read."""


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
        span, stability = "", ""
        if answer.comparison is not None:
            low, high = answer.comparison.interval
            has_interval = math.isfinite(low) and math.isfinite(high)  # one seed has none
            span = f"{answer.comparison.difference:+.4g}" + f" [{low:+.4g}, {high:+.4g}]" * has_interval
            stability = str(answer.comparison.stability)
        rows.append((answer.stage, answer.size, answer.arm, answer.figure, span, answer.verdict, stability))
    if rows:
        print_table(("stage", "size", "arm", "figure", "difference", "verdict", "stability"), rows)
    for answer in conclusion.answers:
        for note in answer.notes:
            print(f"{answer.stage}, {answer.size}, {answer.arm}: {note}")
    for title, reason in conclusion.failed.items():
        print(f"failed: {title}: {reason}")
    print(f"{conclusion.num_ended} of {conclusion.num_runs} runs have ended; the ledger is {out}/ledger.sqlite")
    if not conclusion.is_whole:
        print("the same command goes on; verdicts come when no run is left to wait for")
    elif conclusion.failed:
        print("the same command tries once more what failed")
