"""`attnlab register`: declare a study before its results are known."""

from typing import Annotated

import typer

from attnlab.cli.assignments import read_settings
from attnlab.cli.options import AsJson, Plugins, Settings, StudyFile
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_json


def register(
    file: StudyFile,
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder of the study; default: out/NAME.")] = "",
    budget: Annotated[str | None, typer.Option(help="A section of the file: smoke, minutes, laptop, paper.")] = None,
    assign: Settings = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> int:
    """Declare arms, seeds, looks and thresholds of a study before it runs; its verdicts then say AS REGISTERED."""
    load_plugins(plugin)
    from dataclasses import asdict

    from attnlab.studies.file.recipes import find_study
    from attnlab.studies.study import Study

    study = Study.load(find_study(file), budget, assign=read_settings(assign), plugins=tuple(plugin or ()))
    folder = out or study.default_folder
    declaration = study.register(folder)
    if as_json:
        print_json({"folder": folder, "digest": declaration.digest, **asdict(declaration)})
        return 0
    thresholds = ", ".join(f"{phase} {smallest:g}" for phase, smallest in declaration.smallest.items())
    print(
        f"registered in {folder} as {declaration.digest}: arms {', '.join(declaration.arms)}, baseline "
        f"{declaration.baseline}; {len(declaration.seeds)} seeds; smallest differences of interest: {thresholds}"
    )
    print(f"run the study with --out {folder}; publish the digest to show that it was declared first")
    return 0
