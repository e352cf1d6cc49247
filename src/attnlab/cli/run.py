"""`attnlab run`: a study, or on with one that was stopped."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from attnlab.cli import plugin as plugins
from attnlab.cli.assignments import read_settings, split_assignments
from attnlab.cli.conclusion import print_conclusion
from attnlab.cli.costs import print_estimate
from attnlab.cli.report import report_after_run
from attnlab.cli.tables import print_json
from attnlab.errors import RequestError

INTERRUPTED = 130


def run(
    file: Annotated[str, typer.Argument(metavar="RECIPE|FILE", help="A recipe's name, or a study file, in TOML.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study; out/NAME unless said.")] = "",
    budget: Annotated[str | None, typer.Option(help="smoke, laptop, paper: a section of the file.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Runs at a time, each in a process of its own: 1, on ray all it has room for.")
    ] = None,
    on: Annotated[str, typer.Option(metavar="local|ray", help="Where runs are trained: here, or a cluster.")] = "local",
    threads: Annotated[int, typer.Option(help="Threads of a run.")] = 1,
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PATH", help="Where data is that the study names; repeat it.")
    ] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="A setting by its path; repeat it.")
    ] = None,
    plugin: Annotated[list[str] | None, typer.Option(metavar="FILE.py", help="Stages of your own; repeat it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run and what it costs.")] = False,
    no_calibration: Annotated[
        bool, typer.Option("--no-calibration", help="Of --dry-run: count, and time nothing.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave the report out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answers for programs to read.")] = False,
) -> int:
    """Run a study and say what its evidence carries; the same command goes on where it stopped."""
    for own in plugin or []:
        plugins.load_plugin(own)
    # Imported here because the command line must answer --help without torch.
    from attnlab.cli.live import ProgressView
    from attnlab.studies.file.recipes import find_study
    from attnlab.studies.study import Study

    settings = read_settings(assign)
    places = split_assignments(data or [], "--data")
    found = find_study(file)
    study = Study.load(found, budget, assign=settings, data=places, threads=threads, plugins=tuple(plugin or ()))
    out = out or study.default_folder
    if dry_run:
        # Imported here because a study that is run has no need of it.
        from attnlab.studies.cost.estimate import estimate_cost

        num, say = 1 if workers is None else workers, _ignore_message if as_json else _print_message
        costs = estimate_cost(study, out, num, method="counted" if no_calibration else "measured", say=say)
        if as_json:
            print_json(costs.record())
        else:
            print_estimate(costs, study.plan())
        return 0
    if no_calibration:
        raise RequestError("--no-calibration is for --dry-run, which alone times a trial of every arm; leave it out")
    with ProgressView(out, sys.stdout, is_quiet=as_json) as view:
        conclusion = study.run(out, workers, view.say, on=on, tick=view.tick)
    if as_json:
        print_json({
            "runs": conclusion.num_runs, "ended": conclusion.num_ended, "failed": dict(conclusion.failed),
            "answers": [one.record() for one in conclusion.answers],
            "findings": [one.record() for one in conclusion.findings],
        })  # fmt: skip
    else:
        print_conclusion(conclusion, out)
    if not no_report and (conclusion.is_whole or conclusion.num_ended):
        report_after_run(out, is_quiet=as_json)
    if not conclusion.is_whole:
        return INTERRUPTED
    return 1 if conclusion.failed else 0


def _print_message(message: str) -> None:
    """Print a message at once, also where a pipe would keep it back."""
    print(message, flush=True)


def _ignore_message(message: str) -> None:
    """Leave a message out where programs read."""
