"""The folder of a run: what it says of the run, so that another process knows it again or starts from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnlab.errors import TrainingError

from .job import Job
from .pairing import pairing_of
from .record import read_json, write_json
from .record.trouble import trouble
from .result import Result
from .spec import list_differences

RESULT, CONFIG, MODEL, PAIRING, TOKENIZER = "result.json", "config.json", "model.json", "pairing.json", "tokenizer"
STEPS = "steps.json"
"""What a run's folder holds besides its metrics, checkpoints and predictions."""
MICRO = "micro_batch"


def read_result(folder: Path) -> Result | None:
    """Return what became of the run in a folder, or None where it has not ended."""
    file = folder / RESULT
    return Result.of(read_json(file)) if file.exists() else None


def check_config(job: Job, folder: Path) -> None:
    """Refuse a folder that holds another run. Passes of another size are still the same run, but for rounding."""
    file = folder / CONFIG
    if not file.exists():
        return
    found = [one for one in list_differences(job.record, read_json(file)) if f".{MICRO} " not in one]
    if found:
        raise TrainingError(
            f"{folder} holds another run, which differs in {'; '.join(found[:5])}; give this one a folder of its own"
        )


def leave_config(job: Job, folder: Path) -> None:
    """Write down what run this is, and the model's config and tokenizer, which a run that starts from it needs."""
    if not (folder / CONFIG).exists():
        write_json(folder / CONFIG, job.record)
    if not (folder / STEPS).exists():
        write_json(folder / STEPS, job.steps_of_segments)
    if not (folder / PAIRING).exists():
        write_json(folder / PAIRING, pairing_of(job))
    if not (folder / MODEL).exists():
        if job.tokenizer is not None:
            save_tokenizer(job.tokenizer, folder / TOKENIZER)
        write_json(folder / MODEL, json.loads(job.model.config.to_json_string(use_diff=False)))


def read_num_steps(folder: Path) -> int | None:
    """Return how many updates the run in a folder has; None where it has not begun, or does not say."""
    if (folder / STEPS).exists():
        return int(sum(read_json(folder / STEPS)))
    if (folder / RESULT).exists():
        return int(read_json(folder / RESULT)["num_steps"])
    if not (folder / CONFIG).exists():
        return None
    steps = [segment["steps"] for segment in read_json(folder / CONFIG)["segments"]]
    return None if None in steps else int(sum(steps))


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Let a tokenizer write its files; the library hides the disk's error in one of its own."""
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:
        why = error if isinstance(error, OSError) else OSError(str(error))
        raise trouble("write the tokenizer to", folder, why) from error
