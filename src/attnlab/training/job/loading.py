"""`attnlab.load`: the model of a run's folder, or of a folder that `attnlab.save` wrote."""

import os
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.inputs import expand_path
from attnlab.install import load as load_saved
from attnlab.install import mechanism_of
from attnlab.install.loading import check_loaded_mechanism

from ..spec import find_run_folder
from .restore import restore

RUNS = "runs"
"""The folder of a study that has the folders of its runs."""


def load(
    path: str | os.PathLike[str],
    mechanism: Any = None,
    *,
    model_class: type[PreTrainedModel] | None = None,
) -> PreTrainedModel:
    """Load a model with its mechanism, in eval mode.

    path: the folder of a run (`attnlab train --out`, `runs/ID` of a study; with `:best` its best checkpoint instead of
    the last), or of a model that `attnlab.save` or `attnlab export` wrote.
    mechanism: the expected mechanism, a line or a `Mechanism`; a different one is refused.
    model_class: the class of a saved model, if it is not one of transformers.
    """
    is_path = isinstance(path, str | os.PathLike)
    run = find_run_folder(str(path)) if is_path else None
    if run is None:
        if is_path:
            _refuse_study(Path(path))
        return load_saved(path, mechanism, model_class=model_class)
    folder, is_best = run
    model = restore(folder, is_best=is_best).model
    check_loaded_mechanism(mechanism_of(model), mechanism, folder)
    return model


def _refuse_study(folder: Path) -> None:
    runs = sorted(file.parent for file in (expand_path(folder) / RUNS).glob("*/config.json"))
    if runs:
        raise TrainingError(
            f"{folder} holds a study; load one of its {len(runs)} runs, such as attnlab.load('{runs[0]}'), or "
            "choose by arm and seed with attnlab export"
        )
