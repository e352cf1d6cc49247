"""`attnlab inspect`: a picture of what each head of a trained model attends to in a text."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.options import AsJson, Plugins, RunChoice, choose_run
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_json
from attnlab.errors import RequestError
from attnlab.hub import check_available
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.special_tokens import SpecialTokens

DIGITS = 4


@choose_run
def inspect(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL|RUN", help="A model's folder or name; a run or a study.")],
    text: Annotated[str, typer.Option(metavar="TEXT", help="The text that the model reads.")],
    figure: Annotated[str, typer.Option(metavar="FILE", help="Draw it: .html, .svg, .png, .json.")] = "attention.html",
    layer: Annotated[int | None, typer.Option(min=0, help="The layer of the head that is shown large.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="The head that is shown large.")] = None,
    tokenizer: Annotated[str | None, typer.Option(metavar="DIR_OR_NAME", help="Default: the model's own.")] = None,
    special_tokens: Annotated[
        bool | None,
        typer.Option(help="Around the text: all that the tokenizer adds, or none; default: as in training."),
    ] = None,
    choice: RunChoice,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> int:
    """Draw what each head of a trained model attends to in a text."""
    if (layer is None) != (head is None):
        raise RequestError("--layer and --head choose one head together; give both or neither")
    check_available(model)  # here, since torch and transformers take seconds to import
    from attnlab import charts, heads

    charts.check(figure)
    load_plugins(plugin)
    trained, own, of_run = _load(model, tokenizer, choice)
    added = of_run if special_tokens is None else special_tokens
    maps = heads.show(trained, text, tokenizer=own, layer=layer, head=head, special_tokens=added)
    maps.save(figure)
    facts = maps.facts()
    if as_json:
        num_layers, num_heads = maps.weights.shape[:2]
        rows = [[round(weight, DIGITS) for weight in row] for row in maps.shown.tolist()]
        print_json({
            "model": maps.name, "source": maps.source, "num_layers": num_layers, "num_heads": num_heads,
            "special_tokens": maps.special_tokens, "layers": maps.layers,
            "queries": maps.tokens, "keys": maps.keys, "layer": maps.layer, "head": maps.head, "weights": rows,
            "figure": figure,
        })  # fmt: skip
    else:
        print(f"{facts.title}; shown large: layer {maps.layer}, head {maps.head}")
        print(maps.source)
        print(maps.special_tokens)
    print(f"drawn in {figure}", file=sys.stderr)
    return 0


def _load(name: str, tokenizer: str | None, choice: RunChoice) -> tuple[Any, Any, "SpecialTokens | None"]:
    """Load a model and a tokenizer: the one given, or the model's own; and what a run reads around a text."""
    from attnlab.audits.in_model.loading import load
    from attnlab.cli.runs import find_run_folder
    from attnlab.data import load_tokenizer
    from attnlab.errors import DataError
    from attnlab.studies.answers.study_folder import LEDGER
    from attnlab.training.job.restore import restore
    from attnlab.training.job.weights import silence_transformers
    from attnlab.training.spec import find_run_folder as find_training

    is_study = (expand_path(name) / LEDGER).is_file()
    if is_study or find_training(name) is not None:
        folder = find_run_folder(name, **choice.properties)
        restored = restore(folder, is_best=choice.is_best, say=partial(print, file=sys.stderr, flush=True))
        if restored.tokenizer is None and tokenizer is None:
            raise RequestError(f"the run in {folder} was trained on '{restored.run.task}', whose tokens are not text")
        own = restored.tokenizer if tokenizer is None else load_tokenizer(tokenizer)
        special_tokens = None if restored.tokenizer is None else restored.task.find_special_tokens(own)
        return restored.model, own, special_tokens
    if choice != RunChoice():
        raise RequestError(f"--checkpoint, --arm, --run-seed, --phase and --size choose a run; {name} is a model")
    with silence_transformers():
        model = load(name)
        try:
            return model, load_tokenizer(tokenizer or name), None
        except DataError as error:
            raise RequestError(f"{error}; --tokenizer DIR_OR_NAME gives another one") from error
