"""`attnlab demo`: the first study, from nothing to verdicts and a report, on data that comes with attnlab."""

from __future__ import annotations

from typing import Annotated

import typer

from attnlab.cli.run import run

RECIPE, BUDGET = "quickstart", "smoke"
WORKERS = 2


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study and its report.")] = "out/demo",
) -> int:
    """Run a small study: five mechanisms, two tasks, five paired seeds, in a minute or two, and write a report."""
    print("Five mechanisms learn text and recall, each over five seeds that start alike; one of them cheats.")
    status = run(RECIPE, out=out, budget=BUDGET, workers=WORKERS)
    if status == 0:
        print(
            'Your own idea is one line: attnlab new "cosine | relu(divide=n)" writes a study for it. attnlab '
            "mechanisms lists those with a name, attnlab recipes the studies; docs/tutorial.md goes from an idea to a "
            "verdict."
        )
    return status
