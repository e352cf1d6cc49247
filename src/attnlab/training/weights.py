"""A model to train: built from an architecture, or with the weights of a checkpoint, whatever wrote that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AutoConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from attnlab.errors import TrainingError, closest
from attnlab.install import install, load, mechanism_of
from attnlab.install.saving import PREFIX

from .record import Checkpoints, read_json
from .run import Run, Start, folder_of_run
from .start import initialise

CONFIG = "config.json"


def build_model(start: Start, task: Any, tokenizer: Any, seed: int) -> PreTrainedModel:
    """Build the model of a run with the head its task needs, and install its mechanism."""
    if start.architecture is not None:
        model = fresh(config_of(start.architecture, start, task, tokenizer), task, seed)
        return install(model, start.mechanism, seed=seed)
    path = str(start.checkpoint)
    of_run = folder_of_run(path)
    if of_run is not None:
        return from_run(*of_run, start, task, seed)
    if saved_by_attnlab(Path(path).expanduser()):
        return from_saved(Path(path).expanduser(), start, task, seed)
    model = pretrained(path, start, task, seed)
    return install(model, start.mechanism, seed=seed)


def config_of(kind: str, start: Start, task: Any, tokenizer: Any) -> Any:
    """Make the config of an architecture, fitted to tokenizer and task."""
    known = list(CONFIG_MAPPING)
    if kind not in known:
        raise TrainingError(f"transformers knows no architecture '{kind}'{closest(kind, known) or '.'}")
    own: dict[str, Any] = {}
    if tokenizer is not None:
        pad = tokenizer.pad_token_id
        own = {
            "vocab_size": len(tokenizer),
            "pad_token_id": tokenizer.eos_token_id if pad is None else pad,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        }
    check_settings(kind, start.config)
    return AutoConfig.for_model(kind, **{**own, **task.head_settings, **start.config})


def check_settings(kind: str, settings: Mapping[str, Any]) -> None:
    """Refuse a setting that the architecture does not have: its config would take it and do nothing."""
    plain = AutoConfig.for_model(kind)
    known = [*plain.to_dict(), *plain.attribute_map]
    for name in settings:
        if name not in known:
            raise TrainingError(f"the config of '{kind}' has no setting '{name}'{closest(name, known) or '.'}")


def head_class(task: Any) -> Any:
    """Return the class that gives a model the task's head."""
    return getattr(transformers, task.head)


def fresh(config: Any, task: Any, seed: int) -> PreTrainedModel:
    """Build a model whose every weight starts from the seed and its name."""
    with torch.random.fork_rng(devices=[]):
        try:
            model: PreTrainedModel = head_class(task).from_config(config)
        except (ValueError, TypeError) as error:
            raise TrainingError(f"no model can be built of this config: {str(error).splitlines()[0]}") from error
    initialise(model, seed)
    return model


def pretrained(path: str, start: Start, task: Any, seed: int) -> PreTrainedModel:
    """Load a checkpoint of transformers; weights it lacks, such as a new head's, start from the seed."""
    with torch.random.fork_rng(devices=[]):
        try:
            model, info = head_class(task).from_pretrained(
                path, output_loading_info=True, **task.head_settings, **start.config
            )
        except (OSError, ValueError) as error:
            raise TrainingError(
                f"no model can be loaded from '{path}': {str(error).splitlines()[0]}; give a directory with "
                "config.json and model.safetensors, or a name of the hub while online"
            ) from error
    initialise(model, seed, set(info["missing_keys"]))
    model.float()
    found: PreTrainedModel = model
    return found


def saved_by_attnlab(folder: Path) -> bool:
    """Tell whether a directory is one of `attnlab.save`."""
    file = folder / CONFIG
    return file.is_file() and str(json.loads(file.read_text(encoding="utf-8")).get("model_type", "")).startswith(PREFIX)


def from_saved(folder: Path, start: Start, task: Any, seed: int) -> PreTrainedModel:
    """Take the weights of a model that `attnlab.save` wrote."""
    donor = load(folder, start.mechanism)
    state = {name: tensor.detach() for name, tensor in donor.state_dict().items()}
    return transplant(state, donor.config, start, task, seed)


def from_run(folder: Path, is_best: bool, start: Start, task: Any, seed: int) -> PreTrainedModel:
    """Take the weights of another run."""
    other = Run.of(read_json(folder / CONFIG))
    if other.settings.tuning.mode != "full":
        raise TrainingError(f"the run in {folder} tuned a '{other.settings.tuning.mode}' alone; start from what it did")
    checkpoints = Checkpoints(folder / "checkpoints", print)
    newest = checkpoints.last()
    if newest is None:
        raise TrainingError(f"the run in {folder} has no checkpoint yet")
    best = newest.state["run"]["best"]
    if is_best and best is None:
        raise TrainingError(f"the run in {folder} was never evaluated, so none of its checkpoints is the best")
    kept = checkpoints.at(best["step"]) if is_best else newest
    model = transplant(kept.model, AutoConfig.for_model(**read_json(folder / "model.json")), start, task, seed)
    if str(mechanism_of(model)) != other.start.mechanism:
        raise TrainingError(
            f"the run in {folder} trained '{other.start.mechanism}', not '{mechanism_of(model)}'; start from a run of "
            "the same mechanism"
        )
    return model


def transplant(state: Mapping[str, Tensor], config: Any, start: Start, task: Any, seed: int) -> PreTrainedModel:
    """Build a model with the task's head around the weights of another; a head of the same kind comes along."""
    for name, value in {**task.head_settings, **start.config}.items():
        setattr(config, name, value)
    model = install(fresh(config, task, seed), start.mechanism, seed=seed)
    own = model.state_dict()
    common = {name: tensor for name, tensor in state.items() if name in own and own[name].shape == tensor.shape}
    body = [name for name in own if name.startswith(f"{model.base_model_prefix}.")]
    if missing := [name for name in body if name not in common and not name.endswith("position_ids")]:
        pooler = [name for name in missing if ".pooler." in name]
        if len(pooler) != len(missing):
            first = next(name for name in missing if name not in pooler)
            raise TrainingError(f"the checkpoint has no '{first}' that fits; it is of another body")
    model.load_state_dict(common, strict=False)
    return model
