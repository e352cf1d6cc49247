"""A run's model as one of its checkpoints has it: read from its folder alone where everything trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from attnlab.data import load_tokenizer
from attnlab.errors import TrainingError
from attnlab.install import set_progress
from attnlab.tasks import load as load_task

from ..record import Checkpoint, Checkpoints, read_json
from ..record.folder import CONFIG, TOKENIZER, read_num_steps
from ..record.state import State
from ..spec import RunSpec, Start, find_run_folder
from ..tuning import apply_tuning, frozen_hash, trained_state
from .build import LANGUAGE_HEADS
from .weights import build_model, quiet

Say = Callable[[str], Any]


@dataclass(frozen=True)
class Restored:
    """A model in eval mode with the weights of a checkpoint, and what is known of the run it is of."""

    run: RunSpec
    task: Any
    model: PreTrainedModel
    tokenizer: Any
    """None of a probe, whose tokens are no words."""
    state: State
    """Of the run, when the checkpoint was written."""
    precision: str
    """What its products were computed in."""
    streams: list[str]
    """Hashes of what its segments train on."""


def restore(folder: str | Path, *, is_best: bool = False, say: Say = str) -> Restored:
    """Rebuild the model of a run from its last checkpoint, or from its best."""
    place = Path(folder).expanduser()
    if find_run_folder(str(place)) is None or not (place / CONFIG).is_file():
        raise TrainingError(f"{folder} is not the folder of a run: it needs config.json and checkpoints")
    run = RunSpec.of(read_json(place / CONFIG))
    task = load_task(run.task, **run.task_settings)
    kept = checkpoint_of(place, is_best, say)
    start = run.start
    if run.tuning.mode == "full":
        start = Start(checkpoint=str(place), mechanism=run.start.mechanism)
    with quiet():
        tokenizer = load_tokenizer(place / TOKENIZER) if (place / TOKENIZER).is_dir() else None
        model = build_model(start, task, tokenizer, run.seed, say)
    has_new_head = task.head not in LANGUAGE_HEADS
    apply_tuning(model, run.tuning, has_new_head=has_new_head, seed=run.seed)
    put(kept, model, place)
    set_progress(model, share_done(kept.step, place, say))
    model.eval()  # type: ignore[no-untyped-call]
    return Restored(
        run, task, model, tokenizer, State.of(kept.state["run"]), kept.state["precision"], kept.state["streams"]
    )  # fmt: skip


def share_done(step: int, folder: Path, say: Say) -> float:
    """Return how far training was, by which scheduled stages of a mechanism go."""
    num_steps = read_num_steps(folder)
    if num_steps is None:
        say(f"{folder} does not say how many updates its run has; scheduled stages are taken as they are at their end")
    return 1.0 if num_steps is None else step / num_steps


def checkpoint_of(folder: Path, is_best: bool, say: Say) -> Checkpoint:
    """Read the last checkpoint of a run, or its best."""
    checkpoints = Checkpoints(folder / "checkpoints", say)
    newest = checkpoints.last()
    if newest is None:
        raise TrainingError(f"the run in {folder} has no checkpoint yet; wait for its first")
    if not is_best:
        return newest
    best = State.of(newest.state["run"]).best
    if best is None:
        raise TrainingError(f"the run in {folder} was never evaluated, so none of its checkpoints is the best")
    return checkpoints.at(best.step)


def put(kept: Checkpoint, model: PreTrainedModel, folder: Path) -> None:
    """Put a checkpoint's weights into a model; refuse weights that are not all of it, to the last name."""
    own = trained_state(model)
    if {name: tensor.shape for name, tensor in own.items()} != {name: t.shape for name, t in kept.model.items()}:
        raise TrainingError(f"the checkpoint in {folder} has other weights than the model its config describes")
    if kept.state["frozen"] != frozen_hash(model):
        raise TrainingError(
            f"the run in {folder} trained a part of its model, and what it started from is not what it was; bring that "
            "back to where config.json says (start.checkpoint)"
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(kept.model[name])
