"""Options that several verbs share."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

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
Batch = Annotated[int, typer.Option(min=1, help="The number of sequences.")]
Heads = Annotated[int, typer.Option(min=1, help="The number of heads.")]
HeadDim = Annotated[int, typer.Option(min=1, help="The width of a head.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]


@dataclass(frozen=True)
class RunChoice:
    """The options that choose a run of a study, and its checkpoint."""

    checkpoint: Annotated[Literal["last", "best"], typer.Option(help="The checkpoint of the run.")] = "last"
    arm: Annotated[str | None, typer.Option(help="If the folder is a study: the arm of the run.")] = None
    run_seed: Annotated[int | None, typer.Option(help="If the folder is a study: the seed of the run.")] = None
    phase: Annotated[str | None, typer.Option(help="If the folder is a study: the phase of the run.")] = None
    size: Annotated[str | None, typer.Option(help="If the folder is a study: the size of the run.")] = None

    @property
    def is_best(self) -> bool:
        """Whether the best checkpoint is chosen, not the last one."""
        return self.checkpoint == "best"

    @property
    def properties(self) -> dict[str, str | int | None]:
        """What the run must be, for `find_run_folder`."""
        return {"arm": self.arm, "seed": self.run_seed, "phase": self.phase, "size": self.size}


def choose_run(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb with a parameter `choice` the options of a `RunChoice` in its place."""
    signature, options = inspect.signature(verb), inspect.signature(RunChoice)
    parameters = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in signature.parameters.values()
        for option in (options.parameters.values() if parameter.name == "choice" else [parameter])
    ]

    @functools.wraps(verb)
    def call(**values: Any) -> int:
        choice = RunChoice(**{name: values.pop(name) for name in options.parameters})
        return verb(**values, choice=choice)

    vars(call)["__signature__"] = signature.replace(parameters=parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def takes_plugins(verb: Callable[..., int]) -> bool:
    """Tell whether a verb has the option --plugin."""
    return any(parameter.annotation == Plugins for parameter in inspect.signature(verb).parameters.values())
