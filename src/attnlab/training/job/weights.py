"""A model to train: built from an architecture, or with the weights of a checkpoint, whatever wrote that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import AutoConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging as transformers_logging

from attnlab.errors import TrainingError, closest
from attnlab.install import install, load, mechanism_of
from attnlab.install.saving import PREFIX

from ..record import Checkpoints, read_json
from ..spec import RunSpec, Start, find_run_folder
from .start import initialise

CONFIG = "config.json"
Say = Callable[[str], Any]


def build_model(start: Start, task: Any, tokenizer: Any, seed: int, say: Say) -> PreTrainedModel:
    """Build the model of a run with the head its task needs, and install its mechanism."""
    if start.architecture is not None:
        model = fresh(config_of(start.architecture, start, task, tokenizer), task, seed)
        return install(model, start.mechanism, seed=seed)
    path = str(start.checkpoint)
    of_run = find_run_folder(path)
    if of_run is not None:
        return from_run(*of_run, start, task, seed, say)
    if saved_by_attnlab(Path(path).expanduser()):
        return from_saved(Path(path).expanduser(), start, task, seed)
    model = pretrained(path, start, task, seed, say)
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
    with building():
        return AutoConfig.for_model(kind, **{**own, **task.head_settings, **start.config})


@contextmanager
def building() -> Iterator[None]:
    """Let what transformers says of a config be one sentence; what it raises depends on the setting."""
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, StrictDataclassError) as error:
        first, *more = str(error).splitlines() or [""]
        said = " ".join([first, *more[:1]] if first.endswith(":") else [first])
        raise TrainingError(f"no model can be built of this config ({type(error).__name__}: {said})") from error


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
    with building():
        model: PreTrainedModel = head_class(task).from_config(config)
    initialise(model, seed)
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from reporting on stderr what is said here in its place."""
    verbosity, has_bar = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if has_bar:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def pretrained(path: str, start: Start, task: Any, seed: int, say: Say) -> PreTrainedModel:
    """Load a checkpoint of transformers; weights it lacks, such as a new head's, start from the seed."""
    with torch.random.fork_rng(devices=[]), quiet():
        try:
            config = changed(AutoConfig.from_pretrained(path), start, task)
            model, info = head_class(task).from_pretrained(
                path, config=config, output_loading_info=True, ignore_mismatched_sizes=True
            )
        except (OSError, ValueError) as error:
            raise TrainingError(
                f"no model can be loaded from '{path}': {str(error).splitlines()[0]}; give a directory with "
                "config.json and model.safetensors, or a name of the hub while online"
            ) from error
    for name, theirs, own in sorted(info["mismatched_keys"]):
        if name.startswith(f"{model.base_model_prefix}."):
            raise TrainingError(
                f"'{name}' is {list(theirs)} in {path} and {list(own)} in a model of this config; leave the sizes as "
                "they are there"
            )
    resized = {name for name, *_ in info["mismatched_keys"]}
    missing, unused = sorted({*info["missing_keys"], *resized}), sorted(info["unexpected_keys"])
    initialise(model, seed, set(missing))
    model.float()
    if missing:
        say(f"{path} has no {', '.join(missing[:4])}{' …' * (len(missing) > 4)} of this size: started from the seed")
    if unused:
        say(f"{path} also has {', '.join(unused[:4])}{' …' * (len(unused) > 4)}, which this model has no place for")
    found: PreTrainedModel = model
    return found


def changed(config: Any, start: Start, task: Any) -> Any:
    """Return a checkpoint's config with the head that a task needs, and the settings that a run has of its own."""
    check_settings(config.model_type, start.config)
    with building():
        for name, value in {**task.head_settings, **start.config}.items():
            setattr(config, name, value)
    return config


def saved_by_attnlab(folder: Path) -> bool:
    """Tell whether a directory is one of `attnlab.save`."""
    file = folder / CONFIG
    return file.is_file() and str(json.loads(file.read_text(encoding="utf-8")).get("model_type", "")).startswith(PREFIX)


def from_saved(folder: Path, start: Start, task: Any, seed: int) -> PreTrainedModel:
    """Take the weights of a model that `attnlab.save` wrote."""
    donor = load(folder, start.mechanism)
    state = {name: tensor.detach() for name, tensor in donor.state_dict().items()}
    return transplant(state, donor.config, start, task, seed)


def from_run(folder: Path, is_best: bool, start: Start, task: Any, seed: int, say: Say) -> PreTrainedModel:
    """Take the weights of another run."""
    other = RunSpec.of(read_json(folder / CONFIG))
    if other.tuning.mode != "full":
        raise TrainingError(f"the run in {folder} tuned a '{other.tuning.mode}' alone; start from what it did")
    checkpoints = Checkpoints(folder / "checkpoints", say)
    newest = checkpoints.last()
    if newest is None:
        raise TrainingError(f"the run in {folder} has no checkpoint yet")
    best = newest.state["run"]["best"]
    if is_best and best is None:
        raise TrainingError(f"the run in {folder} was never evaluated, so none of its checkpoints is the best")
    kept = checkpoints.at(best["step"]) if is_best else newest
    config = AutoConfig.for_model(**read_json(folder / "model.json"))
    return transplant(kept.model, config, start, task, seed, mechanism=other.start.mechanism)


def transplant(
    state: Mapping[str, Tensor], config: Any, start: Start, task: Any, seed: int, mechanism: str | None = None
) -> PreTrainedModel:
    """Build a model with the task's head around the weights of another; a head of the same kind comes along."""
    model = install(fresh(changed(config, start, task), task, seed), start.mechanism, seed=seed)
    if mechanism is not None and str(mechanism_of(model)) != mechanism:
        raise TrainingError(
            f"the checkpoint was trained with '{mechanism}', not '{mechanism_of(model)}'; name its own mechanism, or "
            "start from a run of this one"
        )
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
