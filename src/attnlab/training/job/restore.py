"""The model of a run as one of its checkpoints has it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from attnlab.data import load_tokenizer
from attnlab.errors import TrainingError
from attnlab.inputs import expand_path
from attnlab.install import set_progress
from attnlab.install.loading import parse_saved_line
from attnlab.tasks import load as load_task

from ..record.checkpoint import read_checkpoint
from ..record.files import read_json
from ..record.folder import CONFIG, TOKENIZER, read_num_steps
from ..record.state import State
from ..spec import RunSpec, Start, find_run_folder
from ..tuning.apply import apply_tuning
from ..tuning.state import hash_frozen_weights
from .weights import LANGUAGE_HEADS, Say, build_model, load_weights, silence_transformers


@dataclass(frozen=True)
class Restored:
    """A model in eval mode with the weights of a checkpoint, and the run it belongs to."""

    run: RunSpec
    task: Any
    model: PreTrainedModel
    tokenizer: Any
    """None for a probe, whose tokens are not words."""
    state: State
    """The state of the run in the checkpoint."""
    precision: str
    """The format of its matrix products."""
    streams: list[str]
    """Hashes of the training data of its segments."""


def restore(folder: str | Path, *, is_best: bool = False, say: Say = str) -> Restored:
    """Rebuild the model of a run from its last checkpoint, or from its best."""
    place = expand_path(folder)
    if find_run_folder(str(place)) is None or not (place / CONFIG).is_file():
        raise TrainingError(
            f"{folder} is not the folder of a run, as `attnlab train` and `attnlab run` make: it needs config.json and "
            "checkpoints (a model that was saved is read by attnlab.load and from_pretrained as it is)"
        )
    run = RunSpec.of(read_json(place / CONFIG))
    parse_saved_line(run.start.mechanism, place)
    task = load_task(run.task, **run.task_settings)
    checkpoint = read_checkpoint(place, is_best, say)
    start = run.start
    if run.tuning.mode == "full":
        start = Start(checkpoint=str(place), mechanism=run.start.mechanism)
    with silence_transformers():
        tokenizer = load_tokenizer(place / TOKENIZER) if (place / TOKENIZER).is_dir() else None
        model = build_model(start, task, tokenizer, run.seed, say)
    apply_tuning(model, run.tuning, has_new_head=task.head not in LANGUAGE_HEADS, seed=run.seed)
    if not load_weights(checkpoint, model):
        raise TrainingError(f"the checkpoint in {place} has other weights than the model its config describes")
    if checkpoint.state["frozen"] != hash_frozen_weights(model):
        raise TrainingError(
            f"the run in {place} trained a part of its model, and the weights that it started from have changed; "
            "restore them at the path in config.json (start.checkpoint)"
        )
    num_steps = read_num_steps(place)
    if num_steps is None:
        say(f"{place} does not state its number of updates; scheduled stages have their final values")
    elif not 0 < num_steps >= checkpoint.step:
        raise TrainingError(f"{place} states {num_steps} updates, and its checkpoint is of update {checkpoint.step}")
    set_progress(model, 1.0 if num_steps is None else checkpoint.step / num_steps)
    model.eval()  # type: ignore[no-untyped-call]
    state = checkpoint.state
    return Restored(run, task, model, tokenizer, State.of(state["run"]), state["precision"], state["streams"])
