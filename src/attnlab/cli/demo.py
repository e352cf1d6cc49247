"""`attnlab demo`: a first study with verdicts and a report, on data that comes with attnlab."""

from typing import Annotated

import typer

from attnlab.cli.run import run


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study and its report.")] = "",
    is_long: Annotated[bool, typer.Option("--long", help="Ten times the updates.")] = False,
) -> int:
    """Run a small study: three mechanisms, two tasks, five paired seeds, in a few minutes, and write a report."""
    print("Three mechanisms are trained on recall and on text, over five paired seeds; one of them sees the future.")
    folder = out or ("out/demo-long" if is_long else "out/demo")
    status = run("quickstart", out=folder, budget="laptop" if is_long else "smoke", workers=2)
    if status == 0:
        print(
            'Write a study for your own mechanism: attnlab new "cosine | relu(divide=n)". attnlab mechanisms lists '
            "the named mechanisms, attnlab recipes the studies; docs/tutorial.md explains each step."
        )
    return status
