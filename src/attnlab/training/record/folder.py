"""The names of the files in a run's folder, and what other processes read from them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.errors import TrainingError

from ..result import Result
from .disk_errors import explain_disk_error
from .files import read_json

RESULT, CONFIG, MODEL, PAIRING, TOKENIZER = "result.json", "config.json", "model.json", "pairing.json", "tokenizer"
STEPS = "steps.json"
WATCHING = "watching.json"
"""The settings that do not affect the result, as this run last had them."""
TRACKERS = "trackers"
"""The folder of files that trackers keep; they have no effect on the run."""
MICRO = "micro_batch"


def read_result(folder: Path) -> Result | None:
    """Return the result of the run in a folder, or None if the run has not ended."""
    file = folder / RESULT
    with _explain_content(file):
        return Result.of(read_json(file)) if file.exists() else None


def read_num_steps(folder: Path) -> int | None:
    """Return the number of updates of the run in a folder; None if it has not begun or the files do not say."""
    with _explain_content(folder):
        if (folder / STEPS).exists():
            return int(sum(read_json(folder / STEPS)))
        if (folder / RESULT).exists():
            return int(read_json(folder / RESULT)["num_steps"])
        if not (folder / CONFIG).exists():
            return None
        steps = [segment["steps"] for segment in read_json(folder / CONFIG)["segments"]]
        return None if None in steps else int(sum(steps))


@contextmanager
def _explain_content(path: Path) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise TrainingError(f"{path} is not what a run writes ({what}); restore it from a copy") from error


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Save a tokenizer, with the disk's error, which the library wraps in one of its own."""
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:
        cause = error if isinstance(error, OSError) else OSError(str(error))
        raise explain_disk_error("write the tokenizer to", folder, cause) from error
