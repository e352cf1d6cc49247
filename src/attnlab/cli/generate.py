"""`attnlab generate`: let a trained language model continue a text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.tables import print_json
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KEPT = ("last", "best")


def generate(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, of a study, or of attnlab.save.")],
    prompt: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="What to continue; repeat it.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="At most so many, up to the end token.")] = 40,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Draw from so many of the likeliest.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    samples: Annotated[int, typer.Option(min=1, help="Of each prompt, with seeds that follow.")] = 1,
    checkpoint: Annotated[str, typer.Option(help="last or best; of a run.")] = "last",
    arm: Annotated[str | None, typer.Option(help="Of a study: the run of this arm.")] = None,
    run_seed: Annotated[int | None, typer.Option(help="Of a study: the run of this seed.")] = None,
    phase: Annotated[str | None, typer.Option(help="Of a study: the run of this phase.")] = None,
    size: Annotated[str | None, typer.Option(help="Of a study: the run of this size.")] = None,
    plugin: Annotated[list[str] | None, typer.Option(metavar="FILE.py", help="Stages of your own; repeat it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the texts for programs to read.")] = False,
) -> int:
    """Continue a text with a model that was trained, token by token."""
    _check_options(checkpoint, temperature, top_k)
    # Imported here because the command line must answer --help without torch.
    from attnlab.cli import plugin as plugins
    from attnlab.cli.runs import RunChoice, find_run_folder
    from attnlab.tasks import sample

    for own in plugin or []:
        plugins.load_plugin(own)
    place = find_run_folder(folder, RunChoice(arm, run_seed, phase, size))
    model, tokenizer = _load_model(place, checkpoint)
    prompts = prompt or [""]
    for text in prompts:
        _check_room(model, tokenizer, text, tokens)
    found = []
    for text in prompts:
        for number in range(seed, seed + samples):
            written = sample(
                model, tokenizer, text, num_tokens=tokens, temperature=temperature, top_k=top_k, seed=number
            )  # fmt: skip
            found.append({"prompt": text, "seed": number, "text": written})
            if not as_json:
                print(written, flush=True)
    if as_json:
        print_json(found)
    return 0


def _check_options(checkpoint: str, temperature: float, top_k: int | None) -> None:
    """Refuse options that mean nothing, before a model is loaded."""
    if checkpoint not in KEPT:
        raise RequestError(f"--checkpoint is last or best, not '{checkpoint}'")
    if not 0 <= temperature < float("inf"):
        raise RequestError(f"--temperature is a number from 0 up, not {temperature:g}")
    if top_k is not None and top_k < 1:
        raise RequestError(f"--top-k is 1 or more, not {top_k}; leave it out to draw from all tokens")


def _load_model(folder: Path, checkpoint: str) -> tuple[PreTrainedModel, Any]:
    """Load a model that reads forwards and its tokenizer: of a run, or of what attnlab.save wrote."""
    from attnlab.data import load_tokenizer
    from attnlab.install import load
    from attnlab.training.job.restore import restore
    from attnlab.training.job.weights import silence_transformers
    from attnlab.training.spec import find_run_folder

    if find_run_folder(str(folder)) is None:
        if checkpoint != KEPT[0]:
            raise RequestError(f"{folder} is a saved model and has no checkpoints; leave --checkpoint out")
        with silence_transformers():
            model, tokenizer = load(folder), load_tokenizer(folder)
    else:
        found = restore(folder, is_best=checkpoint == "best", say=_print_message)
        model, tokenizer = found.model, found.tokenizer
        if tokenizer is None:
            raise RequestError(f"the run in {folder} is of '{found.run.task}', whose tokens are no words to continue")
    _check_reads_forwards(model, folder)
    return model, tokenizer


def _check_reads_forwards(model: PreTrainedModel, folder: Path) -> None:
    """Refuse a model that does not predict the next token from those before it."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from attnlab.training.tuning.prompt import is_causal

    name = type(model).__name__
    if name not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values() or not is_causal(model):
        raise RequestError(
            f"{folder} holds a {name}, which does not predict the next token from those before it; a language model "
            "that reads forwards is needed, such as one trained by attnlab train clm"
        )


def _check_room(model: PreTrainedModel, tokenizer: Any, prompt: str, num_tokens: int) -> None:
    """Refuse a prompt that, with what is to follow, has more tokens than a model has positions for."""
    from attnlab.training.positions import count_positions
    from attnlab.training.tuning.parts import PROMPT

    limit = count_positions(model)
    learned = getattr(model, PROMPT, None)
    given = len(tokenizer(prompt, add_special_tokens=False)["input_ids"]) + (tokenizer.bos_token_id is not None)
    room = None if limit is None else limit - (0 if learned is None else learned.length)
    if room is not None and given + num_tokens - 1 > room:
        raise RequestError(
            f"a prompt of {given} tokens and --tokens {num_tokens} need {given + num_tokens - 1} positions, and this "
            f"{type(model).__name__} has {room}; shorten the prompt, or ask for fewer tokens"
        )


def _print_message(message: str) -> None:
    """Say something of the checkpoint, beside the text."""
    print(message, file=sys.stderr, flush=True)
