"""Options that several verbs share."""

from typing import Annotated, Literal

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FigureFile = Annotated[str | None, typer.Option("--figure", metavar="FILE", help="Draw it: .svg, .png, .html, .json.")]
Plugins = Annotated[list[str] | None, typer.Option("--plugin", metavar="FILE.py", help="Your own stages; repeatable.")]
Trackers = Annotated[
    list[str] | None,
    typer.Option("--track", metavar="NAME", help="tensorboard, wandb or trackio, which send nothing; repeatable."),
]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="A setting by path; repeatable.")]
StudyFile = Annotated[str, typer.Argument(metavar="RECIPE|FILE", help="The name of a recipe, or a study file in TOML.")]
StudyFolder = Annotated[str, typer.Argument(metavar="DIR", help="The folder of a study: attnlab run --out DIR.")]
Mechanisms = Annotated[list[str], typer.Argument(metavar="MECHANISM…", help="Lines, or names of the catalog.")]
Causal = Annotated[bool, typer.Option(help="Whether a query attends to no later key.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
Checkpoint = Annotated[Literal["last", "best"], typer.Option(help="The checkpoint of the run.")]
Arm = Annotated[str | None, typer.Option(help="If the folder is a study: the arm of the run.")]
RunSeed = Annotated[int | None, typer.Option(help="If the folder is a study: the seed of the run.")]
Phase = Annotated[str | None, typer.Option(help="If the folder is a study: the phase of the run.")]
Size = Annotated[str | None, typer.Option(help="If the folder is a study: the size of the run.")]
