"""`attnlab demo`: a first study with verdicts and a report, on data that comes with attnlab."""

from typing import Annotated

import typer

from attnlab.cli.run import run
from attnlab.machine import find_command


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study and its report.")] = "",
    is_long: Annotated[bool, typer.Option("--long", help="Ten times the updates.")] = False,
) -> int:
    """Run a small study: three mechanisms, two tasks, five paired seeds, in a few minutes, and write a report."""
    print("Three mechanisms are trained on recall and on text, over five paired seeds; one of them sees the future.")
    folder = out or ("out/demo-long" if is_long else "out/demo")
    status = run("quickstart", out=folder, budget="laptop" if is_long else "smoke", workers=2)
    if status == 0:
        command = find_command()
        print(
            f"`{command} mechanisms` lists the named mechanisms; docs/tutorial.md goes from an idea of your own to a "
            "verdict.\nYour own text and your own line, to a verdict in minutes:"
        )
        print(f'  {command} new "cosine | relu(divide=n)" --text my.txt --out study.toml')
        print(f"  {command} run study.toml --out study --workers 2")
        print(f"  {command} report study --open")
    return status
