"""`attnlab export`: the trained model of a run as a folder to keep, load and publish, with its model card."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.options import Plugins, RunChoice, choose_run
from attnlab.cli.plugin import load_plugins
from attnlab.errors import RequestError
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.training.job.restore import Restored

CARD = "README.md"


@choose_run
def export(
    *,
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or of a study.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="A new or empty folder.")] = "",
    choice: RunChoice,
    plugin: Plugins = None,
) -> int:
    """Write a run's model, tokenizer and model card into a folder, for attnlab.load."""
    if not out:
        raise RequestError("--out DIR is missing: the folder to write the model into")
    target = _prepare_target(out)
    from attnlab.checksums import SUMS, write_sums
    from attnlab.cli.runs import find_run_folder
    from attnlab.install import save
    from attnlab.reports.card import find_stage_files, write_model_card
    from attnlab.training.job.restore import restore
    from attnlab.training.record.folder import save_tokenizer

    load_plugins(plugin)
    place = find_run_folder(folder, **choice.properties)
    restored = restore(place, is_best=choice.is_best, say=partial(print, file=sys.stderr, flush=True))
    tokenizer = _choose_tokenizer(restored)
    num_merged = _prepare_model(restored, place)
    stage_files = find_stage_files(restored, place, plugin or [])
    with _write_aside(target) as beside:
        save(restored.model, beside)
        if tokenizer is not None:
            save_tokenizer(tokenizer, beside)
        card = write_model_card(restored, place, choice.checkpoint, num_merged, stage_files)
        (beside / CARD).write_text(card, encoding="utf-8")
        for file in stage_files:
            file.copy_to(beside)
        # All but the card, which is meant to be edited.
        write_sums(beside, [file.name for file in beside.iterdir() if file.name not in (CARD, SUMS)])
    for note in filter(None, (file.note for file in stage_files)):
        print(note, file=sys.stderr)
    calls = [f"runpy.run_path({str(target / file.name)!r})" for file in stage_files]
    code = "; ".join([*calls, f"attnlab.load({str(target)!r})"])
    print(f"{target}: step {restored.state.step:,} of the run in {place}; {code} reads it")
    return 0


def _prepare_target(out: str) -> Path:
    target = expand_path(out)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            what = "a folder that is not empty" if target.is_dir() else "a file"
            raise RequestError(f"{out} is {what}; give --out a new or empty folder")
    except OSError as error:
        raise RequestError(f"cannot read {out}: {error.strerror}") from error
    return target


def _choose_tokenizer(restored: "Restored") -> Any:
    """Return the run's tokenizer, for a causal language model one that encodes prompts as `attnlab generate` does."""
    from attnlab.data.tokenizers.prompts import build_prompt_tokenizer
    from attnlab.tasks import Clm

    if restored.tokenizer is None or not isinstance(restored.task, Clm):
        return restored.tokenizer
    return build_prompt_tokenizer(restored.tokenizer, restored.task.find_special_tokens(restored.tokenizer).before)


def _prepare_model(restored: "Restored", folder: Path) -> int:
    """Merge LoRA adapters into the model and return how many; a tuned prompt cannot be saved with it."""
    from attnlab.training.tuning.lora import merge_lora

    if restored.run.tuning.mode == "prompt":
        raise RequestError(
            f"the run in {folder} tuned a prompt, which is not part of the model and not in its files; keep the folder "
            "of the run (attnlab generate reads it), or tune a prefix, which is saved with the model"
        )
    return merge_lora(restored.model)


@contextmanager
def _write_aside(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces the target when it is complete, and is removed after an error."""
    beside = target.with_name(f".{target.name}.writing")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        yield beside
        beside.replace(target)
    except OSError as error:
        raise RequestError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
