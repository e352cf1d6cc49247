"""`attnlab register`: what a study declares, written down before its results are looked at."""

from __future__ import annotations

from typing import Annotated

import typer

from attnlab.cli.assignments import read_settings
from attnlab.cli.tables import print_json


def register(
    file: Annotated[str, typer.Argument(metavar="RECIPE|FILE", help="A recipe's name, or a study file, in TOML.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study; out/NAME unless said.")] = "",
    budget: Annotated[str | None, typer.Option(help="smoke, laptop, paper: a section of the file.")] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="A setting by its path; repeat it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the declaration for programs to read.")] = False,
) -> int:
    """Declare arms, seeds, looks and thresholds of a study before it is run; its verdicts then say AS REGISTERED."""
    # Imported here because the command line must answer --help without torch.
    from dataclasses import asdict

    from attnlab.studies.file.recipes import find_study
    from attnlab.studies.study import Study

    settings = read_settings(assign)
    study = Study.load(find_study(file), budget, assign=settings)
    folder = out or study.default_folder
    declaration = study.register(folder)
    if as_json:
        print_json({"folder": folder, "digest": declaration.digest, **asdict(declaration)})
        return 0
    thresholds = ", ".join(f"{phase} {smallest:g}" for phase, smallest in declaration.smallest.items())
    print(
        f"registered in {folder} as {declaration.digest}: arms {', '.join(declaration.arms)}, baseline "
        f"{declaration.baseline}; {len(declaration.seeds)} seeds; smallest differences worth having: {thresholds}"
    )
    print(f"the study is run with --out {folder}; publish the digest to show that it came first")
    return 0
