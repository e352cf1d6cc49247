"""`attnlab generate`: let a trained language model continue a text."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.options import AsJson, Plugins, RunChoice, choose_run
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_json
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@choose_run
def generate(
    *,
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, of a study, or of attnlab.save.")],
    prompt: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="The text to continue; repeatable.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The largest number of new tokens.")] = 40,
    temperature: Annotated[float, typer.Option(help="0 takes the most likely token.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Sample from this many of the most likely tokens.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of sampling.")] = 0,
    samples: Annotated[int, typer.Option(min=1, help="Samples per prompt, with consecutive seeds.")] = 1,
    choice: RunChoice,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> int:
    """Continue a text with a trained language model."""
    if not 0 <= temperature < float("inf"):
        raise RequestError(f"--temperature must be 0 or more, not {temperature:g}")
    from attnlab.cli.runs import find_run_folder
    from attnlab.tasks.language.sentences import decode, encode_prompt, sample_tokens

    load_plugins(plugin)
    place = find_run_folder(folder, **choice.properties)
    model, tokenizer, task = _load_model(place, choice.is_best)
    prompts = prompt or [""]
    for text in prompts:
        _check_room(model, encode_prompt(tokenizer, text, task), tokens)
    settings: dict[str, Any] = {"num_tokens": tokens, "temperature": temperature, "top_k": top_k, "task": task}
    records = []
    for text in prompts:
        for number in range(seed, seed + samples):
            ids, num_given = sample_tokens(model, tokenizer, text, seed=number, **settings)
            continuation, new = decode(tokenizer, ids), ids[num_given:]
            names = tokenizer.convert_ids_to_tokens(new)
            records.append({"prompt": text, "seed": number, "text": continuation, "new_tokens": names})
            if text and not decode(tokenizer, new).strip():
                ends = new[0] == tokenizer.eos_token_id
                why = (
                    "the model ends the text there"
                    if ends
                    else f"the {len(new)} new tokens, such as {names[0]}, are no text"
                )
                print(f"seed {number}: nothing was added to the prompt: {why}", file=sys.stderr)
            if not as_json:
                print(continuation, flush=True)
    if as_json:
        print_json(records)
    return 0


def _load_model(folder: Path, is_best: bool) -> tuple["PreTrainedModel", Any, Any]:
    """Load a model, its tokenizer, and the task of its run; None for a saved model."""
    from attnlab.data import load_tokenizer
    from attnlab.install import load
    from attnlab.training.job.restore import restore
    from attnlab.training.job.weights import silence_transformers
    from attnlab.training.spec import find_run_folder

    if find_run_folder(str(folder)) is None:
        if is_best:
            raise RequestError(f"{folder} is a saved model and has no checkpoints; omit --checkpoint")
        with silence_transformers():
            model, tokenizer, task = load(folder), load_tokenizer(folder), None
    else:
        restored = restore(folder, is_best=is_best, say=partial(print, file=sys.stderr, flush=True))
        model, tokenizer, task = restored.model, restored.tokenizer, restored.task
        if tokenizer is None:
            raise RequestError(
                f"the run in {folder} was trained on '{restored.run.task}', whose tokens are not text; give a run of a "
                "language model"
            )
    _check_is_language_model(model, folder)
    return model, tokenizer, task


def _check_is_language_model(model: "PreTrainedModel", folder: Path) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from attnlab.training.tuning.prompt import is_causal

    name = type(model).__name__
    if name not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values() or not is_causal(model):
        raise RequestError(
            f"{folder} holds a {name}, which does not predict the next token from earlier ones; a causal language "
            "model is needed, such as one trained by attnlab train clm"
        )


def _check_room(model: "PreTrainedModel", ids: list[int], num_tokens: int) -> None:
    # The prompt and the new tokens need a position each, except the last one.
    from attnlab.training.tuning.parts import PROMPT
    from attnlab.training.tuning.positions import count_positions

    limit = count_positions(model)
    learned = getattr(model, PROMPT, None)
    num_known: Any = model.get_input_embeddings().num_embeddings
    if ids and max(ids) >= num_known:
        raise RequestError(
            f"the tokenizer gives the prompt a token {max(ids)}, and the model knows {num_known} tokens; the tokenizer "
            "is damaged, or belongs to another model"
        )
    num_given = len(ids)
    room = None if limit is None else limit - (0 if learned is None else learned.length)
    if room is not None and num_given + num_tokens - 1 > room:
        raise RequestError(
            f"a prompt of {num_given} tokens and --tokens {num_tokens} need {num_given + num_tokens - 1} positions; "
            f"this {type(model).__name__} has {room}; shorten the prompt, or generate fewer tokens"
        )
