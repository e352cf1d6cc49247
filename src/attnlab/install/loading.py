"""Load a model that `attnlab.save` wrote: the same architecture, mechanism and weights, or an error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from attnlab.errors import InstallError
from attnlab.mechanisms import Mechanism

from .inspection import set_progress
from .installation import install
from .prefix import set_prefix
from .saving import CONFIG, PREFIX, VERSION, WEIGHTS, digest, folder_of, named_once


def load(
    path: str | os.PathLike[str],
    mechanism: str | Mechanism | None = None,
    *,
    model_class: type[PreTrainedModel] | None = None,
) -> PreTrainedModel:
    """Load a model with its mechanism from a directory that `attnlab.save` wrote; it comes in eval mode.

    mechanism: the one that must be there; another is refused.
    model_class: the class to build, where it is not one of transformers' own; no code is ever loaded from a directory.
    """
    folder = folder_of(path)
    config = _read_config(folder)
    facts = config.pop("attnlab")
    saved = Mechanism.parse(facts["mechanism"])
    if mechanism is not None and Mechanism.parse(mechanism) != saved:
        raise InstallError(f"'{folder}' holds '{saved}', not '{Mechanism.parse(mechanism)}'")
    tensors = _read_weights(folder, str(saved))
    # Building a model draws its initial weights; the caller's random numbers must not notice.
    with torch.random.fork_rng(devices=[]):
        model = _build(config, model_class, folder)
    install(model, saved)
    if facts.get("prefix") is not None:
        set_prefix(model, facts["prefix"])
    fill(model, tensors, folder)
    _check_config(folder)
    if facts.get("progress") is not None:
        set_progress(model, facts["progress"])
    if (folder / "generation_config.json").exists() and model.can_generate():
        try:
            model.generation_config = GenerationConfig.from_pretrained(folder)
        except (OSError, ValueError, TypeError) as error:
            raise InstallError(f"'{folder / 'generation_config.json'}' is not readable: {error}") from error
    model.eval()  # type: ignore[no-untyped-call]
    return model


def _read_config(folder: Path) -> dict[str, Any]:
    """Read and check config.json."""
    if not (folder / CONFIG).is_file():
        raise InstallError(f"'{folder}' has no {CONFIG}; attnlab.load reads what attnlab.save wrote")
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InstallError(f"'{folder / CONFIG}' is not readable: {error}") from error
    facts = config.get("attnlab") if isinstance(config, dict) else None
    if not isinstance(facts, dict) or not isinstance(facts.get("mechanism"), str):
        raise InstallError(
            f"'{folder / CONFIG}' names no mechanism: this is not a directory of attnlab.save. Load it with "
            "from_pretrained, then attnlab.install"
        )
    if facts.get("version") != VERSION:
        raise InstallError(f"'{folder}' was saved in format {facts.get('version')}; this attnlab reads {VERSION}")
    if "auto_map" in config:
        raise InstallError(f"'{folder / CONFIG}' asks for code of its own (auto_map), which attnlab never runs")
    return config  # type: ignore[no-any-return]


def _read_weights(folder: Path, line: str) -> dict[str, Tensor]:
    """Read the weights, and check that they are those of the config's mechanism."""
    if not (folder / WEIGHTS).is_file():
        raise InstallError(f"'{folder}' has no {WEIGHTS}")
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            written = (file.metadata() or {}).get("attnlab")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InstallError(f"'{folder / WEIGHTS}' is not readable: {error}") from error
    if written != line:
        raise InstallError(f"'{folder / WEIGHTS}' was trained with '{written}', but {CONFIG} says '{line}'")
    return tensors


def _build(config: dict[str, Any], model_class: type[PreTrainedModel] | None, folder: Path) -> PreTrainedModel:
    """Build the model a config describes, with weights still to be filled in."""
    kind = str(config.get("model_type", "")).removeprefix(PREFIX)
    named = config.get("architectures")
    name = str(named[0]) if isinstance(named, list) and named else ""
    cls = getattr(transformers, name, None) if model_class is None else model_class
    if not (isinstance(cls, type) and issubclass(cls, PreTrainedModel)):
        raise InstallError(f"transformers has no model class '{name}', which '{folder}' names; give model_class=")
    config_class = cls.config_class
    if config_class is None or getattr(config_class, "model_type", kind) != kind:
        if kind not in CONFIG_MAPPING:
            raise InstallError(f"'{folder}' is of model type '{kind}', which {cls.__name__} is not")
        config_class = CONFIG_MAPPING[kind]
    if cls.config_class is not None and not issubclass(config_class, cls.config_class):
        raise InstallError(f"'{folder}' is of model type '{kind}', which {cls.__name__} is not")
    try:
        return cls(config_class.from_dict({**config, "model_type": kind}))
    except Exception as error:
        # Whatever transformers makes of a config with wrong values in it.
        raise InstallError(f"'{folder / CONFIG}' describes no {cls.__name__}: {error}") from error


def _check_config(folder: Path) -> None:
    """Refuse a config that fits the weights by its sizes, but is not the one they were saved with."""
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        known = (file.metadata() or {}).get("config")
    if known != digest((folder / CONFIG).read_text(encoding="utf-8")):
        raise InstallError(
            f"'{folder / CONFIG}' is not the one its weights were saved with: it was changed, or belongs to others"
        )


def fill(model: PreTrainedModel, tensors: dict[str, Tensor], folder: Path) -> None:
    """Put saved tensors in the place of a model's own; both must have the same names and sizes."""
    own = named_once(model)
    for what, names in (("lacks", own.keys() - tensors.keys()), ("has no place for", tensors.keys() - own.keys())):
        if names:
            shown = ", ".join(sorted(names)[:3]) + (" …" if len(names) > 3 else "")
            subject = f"'{folder / WEIGHTS}'" if what == "lacks" else "the model"
            raise InstallError(f"{subject} {what} {len(names)} weights: {shown}")
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise InstallError(
                f"'{name}' is {tuple(tensors[name].shape)} in '{folder / WEIGHTS}' and {tuple(tensor.shape)} in the "
                "model its config describes"
            )
        # In place of the data, so that tied parameters stay tied and keep the dtype they were saved in.
        tensor.data = tensors[name]
