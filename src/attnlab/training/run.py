"""One run as data: model, mechanism, task, data and settings by name. What it is known and built by."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.errors import TrainingError

from .settings import Optimizer, Schedule, Settings, Stage, Watching, check_number
from .tuning import Tuning


@dataclass(frozen=True)
class Data:
    """What a run trains and is evaluated on: sources as `attnlab.data` names them."""

    train: str = ""
    dev: str | None = None
    """None takes the dev split of `train`, where that has splits."""
    num_train: int | None = None
    """The first so many examples."""
    num_dev: int | None = None
    column: str | None = None
    """Of a table, the column that texts come from, for a language model or a tokenizer to be trained."""
    is_packed: bool = False
    """Whether a language model trains on packed rows of a token file, and not on one line a row."""
    tokenizer: str | None = None
    """A directory, a file or a name of the hub; or 'word', 'wordpiece', 'bpe', trained on the training text, with a
    size behind a colon. None takes that of the model to start from."""

    def __post_init__(self) -> None:
        for what in ("num_train", "num_dev"):
            if getattr(self, what) is not None:
                check_number(f"data.{what}", getattr(self, what), 1, is_whole=True)
        if self.is_packed and self.num_train is not None:
            raise TrainingError("data.num_train counts examples, and packed rows are none; leave one of the two out")


@dataclass(frozen=True)
class Start:
    """What a model is before it trains: an architecture with fresh weights, or a checkpoint; and its mechanism."""

    architecture: str | None = None
    """A model type of transformers, such as gpt2."""
    checkpoint: str | None = None
    """A directory or a name of the hub, what `attnlab.save` wrote, or the folder of a run (`:best` for its best)."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the model's config, such as n_layer."""
    mechanism: str = "dot | softmax"

    def __post_init__(self) -> None:
        if (self.architecture is None) == (self.checkpoint is None):
            raise TrainingError(
                "a run starts from an architecture (a model type, such as gpt2) or from a checkpoint, one of the two; "
                f"got {self.architecture!r} and {self.checkpoint!r}"
            )


@dataclass(frozen=True)
class Run:
    """One run."""

    task: str
    start: Start
    data: Data = field(default_factory=Data)
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    watching: Watching = field(default_factory=Watching)
    threads: int | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Return all that decides the result, as plain data; paths are as they were given."""
        record = dataclasses.asdict(self)
        del record["watching"], record["threads"]
        plain: dict[str, Any] = json.loads(json.dumps(record))  # as it will be read again: without tuples
        return plain

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Run:
        """Read what `config` gave; anything else, such as the config.json of a model, is an error."""
        try:
            return cls._read(config)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrainingError(
                f"this config.json is not that of a run of attnlab.training ({type(error).__name__}: {error}); is it a "
                "model's?"
            ) from error

    @classmethod
    def _read(cls, config: Mapping[str, Any]) -> Run:
        values = dict(config)
        settings = dict(values.pop("settings"))
        settings["stages"] = tuple(Stage(**stage) for stage in settings["stages"])
        optimizer = dict(settings["optimizer"])
        settings["optimizer"] = Optimizer(**{**optimizer, "betas": tuple(optimizer["betas"])})
        settings["schedule"] = Schedule(**settings["schedule"])
        tuning = dict(settings["tuning"])
        settings["tuning"] = Tuning(**{**tuning, "targets": tuple(tuning["targets"])})
        start, data = Start(**values.pop("start")), Data(**values.pop("data"))
        return cls(**values, start=start, data=data, settings=Settings(**settings))


def folder_of_run(path: str) -> tuple[Path, bool] | None:
    """Return the folder of a run and whether its best checkpoint is meant, where a text names one."""
    name, mark, which = path.rpartition(":")
    folder = Path(name if mark and which in ("best", "last") else path).expanduser()
    return (folder, which == "best" and bool(mark)) if (folder / "checkpoints").is_dir() else None
