"""`attnlab run`: run a study, or resume one that was stopped."""

import sys
from contextlib import closing
from functools import partial
from typing import Annotated, Any

import typer

from attnlab.cli.assignments import read_settings, split_assignments
from attnlab.cli.conclusion import print_conclusion
from attnlab.cli.costs import print_estimate
from attnlab.cli.options import AsJson, Plugins, Settings, StudyFile, Trackers
from attnlab.cli.plugin import load_plugins
from attnlab.cli.report import report_after_run
from attnlab.cli.tables import print_json
from attnlab.errors import RequestError, closest

INTERRUPTED = 130
PLACES = ("local", "ray")


def run(
    file: StudyFile,
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study; default: out/NAME.")] = "",
    budget: Annotated[str | None, typer.Option(help="A section of the file: smoke, minutes, laptop, paper.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Runs in parallel, each in its own process; default: 1, on ray as many as fit."),
    ] = None,
    on: Annotated[str, typer.Option(metavar="local|ray", help="Train on this machine or a cluster.")] = "local",
    threads: Annotated[int, typer.Option(min=1, help="Threads of a run.")] = 1,
    data: Annotated[list[str] | None, typer.Option(metavar="NAME=PATH", help="A dataset; repeatable.")] = None,
    assign: Settings = None,
    plugin: Plugins = None,
    track: Trackers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the runs and their cost.")] = False,
    no_calibration: Annotated[bool, typer.Option("--no-calibration", help="With --dry-run: time nothing.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run a study and print its verdicts; the same command resumes a study that was stopped."""
    if on not in PLACES:
        raise RequestError(f"--on takes {' or '.join(PLACES)}, not '{on}'{closest(on, PLACES)}")
    load_plugins(plugin)
    from attnlab.cli.live import ProgressView
    from attnlab.studies.file.recipes import find_study
    from attnlab.studies.study import Study

    settings, paths = read_settings(assign), split_assignments(data or [], "--data")
    study = Study.load(
        find_study(file), budget, assign=settings, data=paths, threads=threads, plugins=tuple(plugin or ()),
        trackers=tuple(track or ()),
    )  # fmt: skip
    out = out or study.default_folder
    if dry_run:
        study.check_folder(out)
        study.check_limits()
        from attnlab.studies.cost.estimate import estimate_cost

        method: Any = "counted" if no_calibration else "measured"
        num, say = 1 if workers is None else workers, str if as_json else partial(print, flush=True)
        costs = estimate_cost(study, out, num, method=method, say=say)
        if as_json:
            print_json(costs.record())
        else:
            print_estimate(costs, study.plan(out=out))
        return 0
    if no_calibration:
        raise RequestError("--no-calibration is only for --dry-run, which times a run of every arm; omit it")
    with closing(ProgressView(out, sys.stdout, is_quiet=as_json)) as view:
        conclusion = study.run(out, workers, view.say, on=on, tick=view.tick)
    if as_json:
        print_json({
            "runs": conclusion.num_runs, "ended": conclusion.num_ended, "failed": dict(conclusion.failed),
            "answers": [answer.record() for answer in conclusion.answers],
            "joint_answers": [answer.record() for answer in conclusion.joint_answers],
            "targets": [target.record() for target in conclusion.targets],
            "findings": [finding.record() for finding in conclusion.findings],
            "smoke_test": conclusion.smoke_test,
        })  # fmt: skip
    else:
        print_conclusion(conclusion, out)
    if not no_report and (conclusion.is_whole or conclusion.num_ended):
        report_after_run(out, is_quiet=as_json)
    if not conclusion.is_whole:
        return INTERRUPTED
    return 1 if conclusion.failed else 0
