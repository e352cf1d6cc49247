"""The names of the files in a run's folder, and what other processes read from them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.checksums import write_sums
from attnlab.errors import TrainingError

from ..result import Result
from .disk_errors import explain_disk_error
from .files import read_json

RESULT, CONFIG, MODEL, PAIRING, TOKENIZER = "result.json", "config.json", "model.json", "pairing.json", "tokenizer"
STEPS, METRICS = "steps.json", "metrics.jsonl"
WATCHING = "watching.json"
"""The settings that do not affect the result, as this run last had them."""
WORKLOAD = "workload.json"
"""The operations of a run of a study, by counting; they have no effect on it."""
TRACKERS = "trackers"
"""The folder of files that trackers keep; they have no effect on the run."""
MICRO = "micro_batch"
OWN_FILES = (CONFIG, RESULT, METRICS, WORKLOAD)
"""The files by which a run's folder is recognised."""


def read_result(folder: Path) -> Result | None:
    """Return the result of the run in a folder, or None if the run has not ended."""
    file = folder / RESULT
    with _explain_content(file):
        if not file.exists():
            return None
        record = read_json(file)
        record.pop(METRICS, None)  # the seal of that file
        return Result.of(record)


def read_num_steps(folder: Path) -> int | None:
    """Return the number of updates of the run in a folder; None if it has not begun or the files do not say."""
    with _explain_content(folder):
        if (folder / STEPS).exists():
            steps = read_json(folder / STEPS)
            return int(sum(steps["steps"] if isinstance(steps, dict) else steps))  # a list in older folders
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
    """Save a tokenizer and the SHA-256 of its files, with the disk's error, which the library wraps in its own."""
    try:
        write_sums(folder, [Path(file).name for file in tokenizer.save_pretrained(folder)])
    except Exception as error:
        cause = error if isinstance(error, OSError) else OSError(str(error))
        raise explain_disk_error("write the tokenizer to", folder, cause) from error
