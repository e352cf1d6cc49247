"""The folder of a run: what it says of the run, so that another process knows it again or starts from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..result import Result
from .files import read_json
from .trouble import trouble

RESULT, CONFIG, MODEL, PAIRING, TOKENIZER = "result.json", "config.json", "model.json", "pairing.json", "tokenizer"
STEPS = "steps.json"
"""What a run's folder holds besides its metrics, checkpoints and predictions."""
MICRO = "micro_batch"


def read_result(folder: Path) -> Result | None:
    """Return what became of the run in a folder, or None where it has not ended."""
    file = folder / RESULT
    return Result.of(read_json(file)) if file.exists() else None


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
