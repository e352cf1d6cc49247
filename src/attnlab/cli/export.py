"""`attnlab export`: the trained model of a run as a folder to keep, load and publish, and its card."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attnlab.reports.card import StageFile
    from attnlab.training.job.restore import Restored

KEPT = ("last", "best")
CARD = "README.md"


def export(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, or of a study.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="A folder that is empty, or not there yet.")] = "",
    checkpoint: Annotated[str, typer.Option(help="last or best.")] = "last",
    arm: Annotated[str | None, typer.Option(help="Of a study: the run of this arm.")] = None,
    run_seed: Annotated[int | None, typer.Option(help="Of a study: the run of this seed.")] = None,
    phase: Annotated[str | None, typer.Option(help="Of a study: the run of this phase.")] = None,
    size: Annotated[str | None, typer.Option(help="Of a study: the run of this size.")] = None,
    plugin: Annotated[list[str] | None, typer.Option(metavar="FILE.py", help="Stages of your own; repeat it.")] = None,
) -> int:
    """Write a run's model, tokenizer and model card into a folder, for attnlab.load."""
    if not out:
        raise RequestError("--out DIR is missing: the folder to write the model into")
    if checkpoint not in KEPT:
        raise RequestError(f"--checkpoint is last or best, not '{checkpoint}'")
    target = _prepare_target(out)
    # Imported here because the command line must answer --help without torch.
    from attnlab.cli import plugin as plugins
    from attnlab.cli.runs import RunChoice, find_run_folder
    from attnlab.install import save
    from attnlab.reports.card import find_stage_files, write_model_card
    from attnlab.training.job.restore import restore
    from attnlab.training.record.folder import save_tokenizer

    for file in plugin or []:
        plugins.load_plugin(file)
    place = find_run_folder(folder, RunChoice(arm, run_seed, phase, size))
    found = restore(place, is_best=checkpoint == "best", say=_print_message)
    num_merged = _prepare_model(found, place)
    carried = find_stage_files(found, place, plugin or [])
    with _write_aside(target) as beside:
        save(found.model, beside)
        if found.tokenizer is not None:
            save_tokenizer(found.tokenizer, beside)
        (beside / CARD).write_text(write_model_card(found, place, checkpoint, num_merged, carried), encoding="utf-8")
        for own in carried:
            own.copy_to(beside)
    for note in filter(None, (own.note for own in carried)):
        _print_message(note)
    print(f"{target}: step {found.state.step:,} of the run in {place}; {_write_loading_code(target, carried)} reads it")
    return 0


def _prepare_target(out: str) -> Path:
    """Return the folder to write into; one that holds something is refused."""
    target = Path(out).expanduser()
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            what = "a folder that is not empty" if target.is_dir() else "a file"
            raise RequestError(f"{out} is {what}; give --out one that is empty or not there yet")
    except OSError as error:
        raise RequestError(f"cannot look into {out}: {error.strerror}") from error
    return target


def _write_loading_code(target: Path, carried: Sequence[StageFile]) -> str:
    """Write what loads an exported model in Python: the files of its stages first."""
    calls = [f"runpy.run_path({str(target / own.name)!r})" for own in carried]
    return "; ".join([*calls, f"attnlab.load({str(target)!r})"])


def _prepare_model(found: Restored, folder: Path) -> int:
    """Make a model one that can be saved whole: merge LoRA's adapters and return how many; a prompt cannot be."""
    from attnlab.training.tuning.lora import merge_lora

    if found.run.tuning.mode == "prompt":
        raise RequestError(
            f"the run in {folder} tuned a prompt, which stands beside a model and has no place in its files; keep the "
            "folder of the run (attnlab generate reads it), or tune a prefix, which is saved with the model"
        )
    return merge_lora(found.model)


@contextmanager
def _write_aside(target: Path) -> Iterator[Path]:
    """Give a folder to write into that takes its place when all of it is there, and is gone otherwise."""
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


def _print_message(message: str) -> None:
    """Say something of the checkpoint."""
    print(message, file=sys.stderr, flush=True)
