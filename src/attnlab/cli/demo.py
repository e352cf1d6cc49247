"""`attnlab demo`: the first study, from nothing to verdicts and a report, on data that comes with attnlab."""

from __future__ import annotations

from typing import Annotated

import typer

from attnlab.cli.run import run

RECIPE = "quickstart"
SHORT, LONG = "smoke", "laptop"
"""Budgets: the second has ten times the updates of the first."""
WORKERS = 2


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study and its report.")] = "",
    is_long: Annotated[bool, typer.Option("--long", help="Ten times the updates: do the words hold?")] = False,
) -> int:
    """Run a small study: three mechanisms, two tasks, five paired seeds, in a few minutes, and write a report."""
    print("Three mechanisms learn to recall and to read, each over five seeds that start alike; one of them cheats.")
    folder = out or ("out/demo-long" if is_long else "out/demo")
    status = run(RECIPE, out=folder, budget=LONG if is_long else SHORT, workers=WORKERS)
    if status == 0:
        print(
            'Your own idea is one line: attnlab new "cosine | relu(divide=n)" writes a study for it. attnlab '
            "mechanisms lists those with a name, attnlab recipes the studies; docs/tutorial.md goes from an idea to a "
            "verdict."
        )
    return status
