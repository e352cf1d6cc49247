"""The files that identify a run: its config, and hashes that show which runs of other arms are paired with it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.errors import TrainingError
from attnlab.install.weight_parts import weight_parts

from ..job.job import Job
from ..job.stream import hash_features
from ..record.files import read_json, write_json
from ..record.folder import CONFIG, MICRO, MODEL, PAIRING, STEPS, TOKENIZER, WATCHING, save_tokenizer
from ..spec import Watching, list_differences

NUM_BATCHES = 3


def check_config(job: Job, folder: Path) -> None:
    """Raise an error if a folder holds another run; another `micro_batch` only changes rounding and is allowed."""
    file = folder / CONFIG
    if not file.exists():
        return
    differences = [text for text in list_differences(job.record, read_json(file)) if f".{MICRO} " not in text]
    if differences:
        raise TrainingError(
            f"{folder} holds another run, which differs in {'; '.join(differences[:5])}; choose another folder"
        )


def write_config(job: Job, folder: Path) -> None:
    """Write the run's config, steps and pairing, and the model's config and tokenizer, unless they exist.

    What is recorded during the run may change when it is resumed, so it is written each time.
    """
    write_json(folder / WATCHING, job.settings.model_dump(mode="json", include=set(Watching.model_fields)))
    if not (folder / CONFIG).exists():
        write_json(folder / CONFIG, job.record)
    if not (folder / STEPS).exists():
        write_json(folder / STEPS, {"steps": job.steps_of_segments})
    if not (folder / PAIRING).exists():
        write_json(folder / PAIRING, compute_pairing(job))
    if not (folder / MODEL).exists():
        if job.tokenizer is not None:
            save_tokenizer(job.tokenizer, folder / TOKENIZER)
        write_json(folder / MODEL, json.loads(job.model.config.to_json_string(use_diff=False)))


def compute_pairing(job: Job) -> dict[str, Any]:
    """Return hashes and shapes of the initial weights, and hashes of the first batches and the evaluation data."""
    batches = hashlib.sha256()
    for stream in job.streams:
        batches.update(stream.identity.encode())
        for step in range(min(NUM_BATCHES, stream.arrangement.steps_per_epoch)):
            for name, tensor in sorted(stream.make(stream.arrangement.rows(0, step), 0).items()):
                batches.update(f"{name} {hash_tensor(tensor)}".encode())
    return {
        "weights": {name: hash_tensor(weight) for name, weight in weight_parts(job.model)},
        "shapes": {name: list(weight.shape) for name, weight in weight_parts(job.model)},
        "batches": batches.hexdigest(),
        "evaluation": "" if job.dev is None else hash_features(job.dev.features),
    }


def hash_tensor(tensor: Tensor) -> str:
    """Return the hash of a tensor's bytes."""
    plain = tensor.detach().cpu().contiguous()
    return hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy().data).hexdigest()[:16]
